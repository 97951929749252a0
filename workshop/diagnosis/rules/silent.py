"""Trainings that end without an error, and are wrong."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Iterator

from workshop.diagnosis.evidence import Evidence, Rank, shorten
from workshop.diagnosis.rules.rule import Cases, Finding, rule
from workshop.diagnosis.source import lines_with
from workshop.diagnosis.steps import MIN_STEPS, step_times

# A call of what is inside DDP's wrapper, but none that only looks
AROUND_DDP = r"\.module(\.(?!\w*state_dict|parameters|named_|eval|train|to\b)\w+)*\("
LOADS = r"^[^#]*\bload_state_dict\("
MIN_ALIKE = 4  # of the steps 1, 2, 4, 8, ...
NO_SYNC = r"^[^#]*\bno_sync\b"

THROUGH_DDP = "Call the model through DDP's wrapper, not by its `.module`."
DESPITE_DDP = (
    "Let the last forward and backward before each optimizer step run outside of no_sync; wrap the "
    "model when it is whole, with requires_grad as it will be."
)


@rule(
    "not a number",
    "Find that rank's batch: look for empty or broken examples, a division by zero, a logarithm; "
    "clip gradients; check `torch.isfinite(loss)` on every rank before backward.",
)
def not_a_number(evidence: Evidence) -> Cases:
    """A loss that is no number: the rank that printed it first."""
    for line in evidence.lines:
        if re.search(r'(?i)loss"?\W{0,3}\s*(nan|inf)\b', line.text):
            who = f"rank {line.rank}" if line.rank is not None else "a rank"
            yield f"{who}: {shorten(line.text)}", "the first loss that is no number is there"
            return
    for rank, note in _optimizers(evidence):
        if note.get("finite") is False:
            yield f"rank {rank.number}, at the end", "its weights are no numbers"
            return


@rule(
    "weights differ",
    "Broadcast rank 0's weights before the first step and average every gradient, or let DDP do "
    "both. Then a hash of the weights is the same on all ranks.",
)
def weights_differ(evidence: Evidence) -> Cases:
    """At the end, or after two steps of DDP's, ranks that average together differ."""
    groups: defaultdict[str, list[Rank]] = defaultdict(list)
    for rank in evidence.ranks:
        groups[rank.averages_in].append(rank)
    for ranks in groups.values():
        yield from _weights_of_a_group(dataclasses.replace(evidence, ranks=ranks))


def _weights_of_a_group(evidence: Evidence) -> Cases:
    notes = list(_optimizers(evidence))
    hashes = {rank.number: note["hash"] for rank, note in notes if note["hash"] is not None}
    shapes = {str(note["shapes"]) for _, note in notes}
    complete = len(notes) == len(hashes) == len(evidence.ranks) and len(shapes) == 1
    steps = _steps_that_differ(evidence) if len(shapes) < 2 else []
    where = f"hash of the optimizer's first weights after {_last(steps)}" if steps else ""
    if steps and not all(rank.note.get("ddp") for rank in evidence.ranks):
        averaged, gradients = _averaged_in_a_step(evidence.ranks[0]) or (0, 0)
        part = f"{averaged:,} numbers in the last step, and there are {gradients:,} gradients"
        yield (
            where,
            "they were equal before the first step and differ since step "
            f"{steps[0][0]} at the latest, although each step calls all_reduce, of {part}"
            f"{': not all are averaged' if averaged < gradients else ''}",
        )
    elif steps and steps[0][0] == 0:
        loads = lines_with(evidence.ranks[0].collectives, LOADS)
        yield Finding(
            "weights differ",
            where,
            "they differ before the first step: DDP made them equal when it wrapped the model, and "
            "after that some ranks loaded or changed them, or all got new layers"
            f"{loads and f' (see {loads})'}",
            "Load a checkpoint and replace layers before DDP wraps the model, or load it on every "
            "rank; the optimizer's state on every rank in any case.",
        )
    elif steps and (rates := _different_rates(evidence, steps)):
        yield Finding(
            "weights differ",
            where,
            f"their optimizers have different learning rates: {', '.join(sorted(rates))}",
            "Load the optimizer's state on every rank, and step a scheduler by the same value on "
            "all (all_reduce a validation loss first): DDP exchanges nothing of the optimizer.",
        )
    elif steps and not any(c.in_backward for rank in evidence.ranks for c in rank.collectives):
        calls = evidence.ranks[0].collectives
        around = lines_with(calls, AROUND_DDP) or lines_with(calls, r"\.module\b")
        yield Finding(
            "weights differ",
            where,
            "the model is wrapped in DDP, and no backward averages a gradient: forward goes "
            f"around the wrapper{around and f' ({around})'}",
            THROUGH_DDP,
        )
    elif steps:
        calls = evidence.ranks[0].collectives
        around, unsynced = (lines_with(calls, words) for words in (AROUND_DDP, NO_SYNC))
        yield Finding(
            "weights differ",
            where,
            f"they differ since step {steps[0][0]} at the latest, although the model is wrapped in "
            f"DDP: {f'does forward go around the wrapper ({around}), ' if around else ''}does the "
            f"optimizer step after a backward under no_sync{unsynced and f' ({unsynced})'}, or did "
            "weights begin to need gradients after it was made?",
            THROUGH_DDP if around else DESPITE_DDP,
        )
    elif complete and len(set(hashes.values())) > 1:
        calls = [c for c in notes[0][0].collectives if c.op == "all_reduce"]
        averaged = sum(call.elements for call in calls)
        gradients = sum(math.prod(shape) for shape in notes[0][1]["shapes"])
        if not calls:
            reason = "and no rank has called all_reduce: nobody averages the gradients"
        elif averaged < gradients:
            reason = (
                f"all its all_reduce carry {averaged:,} numbers, and a step's gradients are "
                f"{gradients:,}: they are not averaged (does forward go around DDP's wrapper?)"
            )
        else:
            reason = "they do exchange gradients, so they began with different weights"
        by_rank = ", ".join(f"rank {n} {value:08x}" for n, value in hashes.items())
        yield f"hash of the weights at the end: {by_rank}", reason


def _steps_that_differ(evidence: Evidence) -> list[tuple[int, dict[int, int]]]:
    """(step, rank -> hash) of the steps since which ranks have had different weights.

    Of ranks that train with DDP, or began with equal weights and exchange gradients in each step.

    Empty if only the newest differs: a rank may just be about to average. Nor if ranks take part
    with unequal numbers of batches: the weights are equal again at Join's end.
    """
    steps = {rank.note.get("optimizer_steps") for rank in evidence.ranks}
    joins = any(call.in_join for rank in evidence.ranks for call in rank.collectives)
    if joins or (len(steps) > 1 and not evidence.running):
        return []
    noted = {rank.number: rank.note.get("hashes", []) for rank in evidence.ranks}
    ddp = all(rank.note.get("ddp") for rank in evidence.ranks)
    each_step = all(_averaged_in_a_step(rank) for rank in evidence.ranks)
    if (
        not (ddp or each_step)
        or len(noted) < 2
        or any(len(of_rank) != 1 for of_rank in noted.values())
    ):
        return []
    by_rank = {number: of_rank[0] for number, of_rank in noted.items()}
    common = sorted(set.intersection(*map(set, by_rank.values())), key=int)
    rows = [(int(step), {rank: of[step] for rank, of in by_rank.items()}) for step in common]
    if not ddp and not (rows and rows[0][0] == 0 and len(set(rows[0][1].values())) == 1):
        return []
    differ: list[tuple[int, dict[int, int]]] = []
    for row in reversed(rows):
        if len(set(row[1].values())) == 1:
            break
        differ.insert(0, row)
    return differ if len(differ) > 1 else []


def _different_rates(evidence: Evidence, steps: list[tuple[int, dict[int, int]]]) -> set[str]:
    """The learning rates of the first of these steps in which ranks had different ones."""
    noted = [of for rank in evidence.ranks for of in rank.note.get("rates", [])]
    of_steps = ({str(of[str(n)]) for of in noted if str(n) in of} for n, _ in steps)
    return next((rates for rates in of_steps if len(rates) > 1), set())


def _last(steps: list[tuple[int, dict[int, int]]]) -> str:
    by_rank = ", ".join(f"rank {number} {value:08x}" for number, value in steps[-1][1].items())
    return f"step {steps[-1][0]}: {by_rank}"


def _averaged_in_a_step(rank: Rank) -> tuple[int, int] | None:
    """How many numbers a rank's all_reduce carry in its last step, and how many its weights are.

    None unless in each of its last steps one has a weight's shape, or carries half of all: other
    scripts average a loss in each step, and the weights now and then.
    """
    notes, stepped = rank.objects.get("optimizers", []), rank.note.get("stepped_at", [])
    if len(notes) != 1 or len(stepped) <= MIN_STEPS:
        return None
    shapes = {"x".join(map(str, shape)) for shape in notes[0]["shapes"] if len(shape) > 1}
    weights = sum(math.prod(shape) for shape in notes[0]["shapes"])
    sums = [call for call in rank.collectives if call.op == "all_reduce"]
    in_steps = [[c for c in sums if a < c.created <= b] for a, b in itertools.pairwise(stepped)]
    if all(any(c.sizes in shapes or 2 * c.elements > weights for c in cs) for cs in in_steps):
        return sum(c.elements for c in in_steps[-1]), weights
    return None


@rule(
    "weights do not change",
    "Make the optimizer of the wrapped model's parameters, after FSDP or DDP has wrapped it, and "
    "look at the learning rate.",
)
def weights_do_not_change(evidence: Evidence) -> Cases:
    """After the steps 0, 1, 2, 4, ... the optimizer's weights are the same.

    Not for gradients too small to show in the few numbers that are compared.
    """
    for rank in [rank for rank in evidence.ranks if rank.note.get("idle", True)]:
        for of_optimizer in rank.note.get("hashes", []):
            if len(of_optimizer) > 4 and len(set(of_optimizer.values())) == 1:
                last = max(of_optimizer, key=int)
                yield (
                    f"rank {rank.number}: its weights of step {last} are those of step 1",
                    "it steps, and changes nothing: it may hold weights that the model has no more",
                )
                return


@rule("order never changes", "Call sampler.set_epoch(epoch) before each epoch.")
def set_epoch_forgotten(evidence: Evidence) -> Cases:
    """A DistributedSampler that shuffles is still at epoch 0 after more than an epoch.

    Its epoch was looked at at some time, and only steps before that count.
    """
    steps = step_times(evidence)
    for rank, loader in _loaders(evidence):
        shuffles = loader["distributed"] and loader["shuffle"] and loader["epoch"] == 0
        looked = rank.objects.get("time", rank.note["time"])
        done = sum(end <= looked for end in steps.of_ranks[0].ended) if steps else 0
        if shuffles and loader["batches"] and done > 1.2 * loader["batches"]:
            yield (
                f"rank {rank.number}: {done} steps of {loader['batches']} batches per epoch",
                "its DistributedSampler is still at epoch 0: each epoch has the same order",
            )
            return


@rule(
    "samplers of different seeds",
    "Give all ranks' DistributedSamplers one seed: rank alone chooses the part, and an order of "
    "its own on each rank takes some examples twice, and others never.",
)
def sampler_seeds(evidence: Evidence) -> Cases:
    """Each rank's DistributedSampler shuffles all examples in another order."""
    seeds: defaultdict[object, list[int]] = defaultdict(list)
    for rank, loader in _loaders(evidence):
        if loader["distributed"] and loader["shuffle"] and loader.get("seed") is not None:
            seeds[loader["seed"]].append(rank.number)
    once = {rank for ranks in seeds.values() for rank in ranks}
    if len(seeds) > 1 and len(once) == sum(map(len, seeds.values())) == len(evidence.ranks):
        yield (
            ", ".join(f"rank {ranks[0]}: seed {seed}" for seed, ranks in seeds.items()),
            "each rank takes its part of another order",
        )


@rule(
    "splits of different seeds",
    "Give random_split one generator on all ranks, such as torch.Generator().manual_seed(0): what "
    "one rank holds out, another trains on.",
)
def split_seeds(evidence: Evidence) -> Cases:
    """Each rank's DistributedSampler deals out another random subset."""
    subsets: defaultdict[int, set[int]] = defaultdict(set)
    for rank, loader in _loaders(evidence):
        if loader["distributed"] and loader.get("subset") is not None:
            subsets[loader["subset"]].add(rank.number)
    ranks = [rank for of_subset in subsets.values() for rank in of_subset]
    if len(set(ranks)) == len(evidence.ranks) > 1 and len(ranks) == len(subsets):
        yield (
            f"all ranks: {len(subsets)} subsets, none of which two ranks have",
            "each rank takes its part of another random split",
        )


@rule(
    "same data on all ranks",
    "Give the DataLoader a DistributedSampler; a batch sampler or an IterableDataset of your own "
    "must deal out by rank.",
)
def same_data(evidence: Evidence) -> Cases:
    """DDP trains, and the loaders deal out nothing."""
    if evidence.world_size > 1 and any(rank.objects.get("models") for rank in evidence.ranks):
        loaders = [loader for _, loader in _loaders(evidence)]
        plain = [row for row in loaders if row["sampler"] in ("RandomSampler", "SequentialSampler")]
        if loaders and len(plain) == len(loaders):
            alike = len({(r["batches"], r["batch_size"], r.get("data")) for r in loaders}) == 1
            if alike and len(loaders) >= evidence.world_size:
                yield (
                    f"all ranks: a {plain[0].get('batch_sampler') or plain[0]['sampler']} over all "
                    f"{plain[0]['batches']} batches",
                    "every rank reads the whole data set",
                )


@rule(same_data.cause, same_data.remedy)
def same_inputs(evidence: Evidence) -> Cases:
    """The models are called with the same, of loaders: random numbers need not be dealt out."""
    steps = _steps_of_equal_inputs(evidence)
    if steps and all(rank.note.get("loaded") for rank in evidence.ranks):
        yield (
            "all ranks: what the model is called with after steps "
            f"{', '.join(map(str, steps))} is the same",
            "every rank trains on the same examples",
        )


def _steps_of_equal_inputs(evidence: Evidence) -> list[int]:
    """The steps after which all ranks called their models with the same.

    Of the first steps, if these are many: a rank that evaluates draws random numbers of its own.
    Empty where ranks share a model's weights, and so its input, and for an input that never
    changes: a benchmark's.
    """
    noted = [rank.note.get("inputs", {}) for rank in evidence.ranks]
    plain = len(list(_optimizers(evidence))) == len(evidence.ranks)
    averages = len({rank.averages_in for rank in evidence.ranks}) == 1
    if len(noted) < 2 or not (plain and averages and evidence.ranks[0].averages_in):
        return []
    steps = sorted(set.intersection(*map(set, noted)), key=int)
    rows = [{of_rank[step] for of_rank in noted} for step in steps]
    alike = list(itertools.takewhile(lambda row: len(row) == 1, rows))
    enough = len(alike) >= min(len(rows), MIN_ALIKE) and len(set.union(set(), *alike)) > 1
    return [int(step) for step in steps[: len(alike)]] if enough else []


@rule(
    "batch norm per rank",
    "Convert the model: SyncBatchNorm.convert_sync_batchnorm (GPUs), or use GroupNorm, LayerNorm, "
    "or a larger batch per rank.",
)
def batch_norm(evidence: Evidence) -> Cases:
    """Batch norm over few examples: each rank's statistics are of its own batch."""
    for rank in evidence.ranks:
        norms = sum(model["batch_norms"] for model in rank.objects.get("models", []))
        sizes = [row["batch_size"] for _, row in _loaders(evidence) if row["batch_size"]]
        if norms and sizes and min(sizes) <= 8:
            yield (
                f"rank {rank.number}: {norms} batch norm layers, {min(sizes)} examples per rank",
                "each rank normalises by so few examples of its own",
            )
            return


@rule(
    "ranks do not know each other",
    "Give the estimator a distribution (workshop preflight shows how it then starts); in a script, "
    "start it with torchrun or mpirun.",
)
def alone(evidence: Evidence) -> Cases:
    """Several instances, or processes of one launcher, each of which trains by itself."""
    trained = [rank for rank in evidence.ranks if rank.note.get("optimizer_steps", 0) > 10]
    solo = [rank for rank in trained if not rank.note["joined"] and not rank.note["libraries"]]
    if len(solo) == len(evidence.ranks) > 1:
        names = solo[0].note.get("variables", {})
        read = "OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE" if "RANK" not in names else "RANK"
        yield (
            f"{len(solo)} processes were started together, and none called init_process_group",
            f"each trained a model of its own; which one it is, the launcher says in {read}",
        )
    count = evidence.description.get("ResourceConfig", {}).get("InstanceCount", 1)
    alone = re.findall(r'"world_size": 1\b', evidence.text)
    if count > 1 and alone and not re.search(r'"world_size": ([2-9]|\d\d)', evidence.text):
        yield (
            f"{count} instances, and world_size 1",
            "each trains a model of its own, and one is kept",
        )


def _optimizers(evidence: Evidence) -> Iterator[tuple[Rank, dict]]:
    """Of each rank that has one, the optimizer, if its weights are whole."""
    for rank in evidence.ranks:
        notes = rank.objects.get("optimizers", [])
        if len(notes) == 1 and notes[0]["plain"]:
            yield rank, notes[0]


def _loaders(evidence: Evidence) -> Iterator[tuple[Rank, dict]]:
    for rank in evidence.ranks:
        for loader in rank.objects.get("loaders", []):
            yield rank, loader
