"""Checks of lesson 11's exercises."""

from __future__ import annotations

import itertools
import math

from workshop.launch.ranks import RankFailed, start_ranks
from workshop.lesson.check import Wrong, exercise, unanswered

WAYS = ("ddp", "zero1", "zero2", "hsdp", "zero3")
# Bytes for each parameter that the ranks divide among them, of 16.
DIVIDED = {"ddp": 0, "zero1": 12, "zero2": 14, "hsdp": 16, "zero3": 16}
GPU, ACTIVATIONS = 80, 10  # GB


def _gigabytes(billions: float, way: str, instances: int) -> float:
    ranks = 8 if way == "hsdp" else 8 * instances
    return billions * (16 - DIVIDED[way] + DIVIDED[way] / ranks)


@exercise("11.1")
def held_gb(answer) -> str:
    """Every way on one, two and sixteen instances; usual mistakes are named."""
    for billions, instances in ((7, 2), (7, 1), (1.5, 16)):
        for way in WAYS:
            right, got = _gigabytes(billions, way, instances), answer(billions, way, instances)
            if not isinstance(got, int | float):
                raise Wrong(f"{got!r} is no number. Return GB.")
            if not math.isclose(got, right, rel_tol=1e-6):
                about = f"held_gb({billions}, {way!r}, {instances}) is {right:g}, you said {got:g}."
                raise Wrong(f"{about} {_held_reason(billions, way, instances, got)}")
    return "7 billion parameters on 16 GPUs: 112 GB with DDP, 7 with ZeRO-3, 14 with HSDP."


def _held_reason(billions: float, way: str, instances: int, got: float) -> str:
    ranks = 8 * instances
    if way == "hsdp" and math.isclose(got, 16 * billions / ranks):
        return "HSDP divides by the ranks of one instance only; each instance has a whole model."
    if way == "ddp":
        return "16 bytes for each parameter: 2 + 2, and 4 + 4 + 4 of the optimizer."
    if way in ("zero1", "zero2") and math.isclose(got, billions * 16 / ranks):
        return "That is ZeRO-3. What else stays whole on every rank?"
    if way == "zero1" and math.isclose(got, billions * (8 + 8 / ranks)):
        return "AdamW's weights of 4 bytes are optimizer state, too: 12 bytes are divided."
    if way == "zero2" and math.isclose(got, _gigabytes(billions, "zero1", instances)):
        return "ZeRO-2 divides the gradients, too."
    return f"The ranks divide {DIVIDED[way]} of the 16 bytes; each of them holds the rest whole."


@exercise("11.2", seconds=180)
def divided_linear(answer) -> str:
    """Run the layer on real ranks, on other batches on each."""
    for world_size in (3, 2):
        with start_ranks(world_size) as ranks:
            try:
                results = ranks.run("sharding.practice:call", answer, timeout=30)
            except RankFailed as error:
                if unanswered("11.2") in str(error):
                    raise
                raise Wrong(f"A rank stopped:\n{error}") from error
            for rank, result in enumerate(results):
                _check_layer(result, f"{world_size} ranks: rank {rank}", world_size)
    return "An ordinary layer's numbers on 3 and 2 real ranks, and none keeps the whole weight."


def _check_layer(result: dict, at: str, world_size: int) -> None:
    if not result["output"]:
        raise Wrong(f"{at} returns another output than x @ weight.T. Are the rows in rank order?")
    if result["x"] is None or result["shard"] is None:
        raise Wrong(
            f"{at}: backward() leaves no gradient in x or shard. Collectives of torch.distributed "
            "have none: write a torch.autograd.Function."
        )
    if not result["x"]:
        raise Wrong(
            f"{at}: x.grad is wrong. It is grad @ weight, with the whole weight, and not divided: "
            "x is this rank's own."
        )
    if result["shard"] == "sum":
        raise Wrong(f"{at}: shard.grad is {world_size} times too large. A reduce-scatter adds.")
    if result["shard"] == "alone":
        raise Wrong(f"{at}: shard.grad is of this rank's batch only. Add all ranks', then divide.")
    if result["shard"] != "mean":
        raise Wrong(f"{at}: shard.grad is wrong. It is this rank's rows of the mean of grad.T @ x.")
    if result["saved"] > result["most_saved"]:
        raise Wrong(
            f"{at} keeps {result['saved']} numbers for backward; x and shard are "
            f"{result['most_saved']}. Don't keep the gathered weight: gather it again in backward."
        )


@exercise("11.3")
def choose(answer) -> str:
    """Numbers of parameters and budgets around the limits of each way."""
    sizes = (1, 3, 4.3, 8, 12, 16, 20, 30, 34, 40, 70, 100, 140, 1000)
    for instances, billions, budget in itertools.product((2, 1, 4, 32), sizes, (1000, 100, 50, 20)):
        right, got = _right(billions, instances, budget), answer(billions, instances, budget)
        if got == right:
            continue
        if got not in (*WAYS, "none"):
            raise Wrong(f"{got!r} is no answer: return one of {', '.join(WAYS)}, none.")
        reason = _choice_reason(billions, instances, budget, got, right)
        raise Wrong(
            f"{billions} billion parameters, {instances} instances, {budget} GB over the link: "
            f"{right!r}, you said {got!r}. {reason}"
        )
    return "Right for every size and link, on 1 to 32 instances."


def _sent_gb(billions: float, way: str, instances: int) -> float:
    """GB over the link of an instance."""
    ranks = 8 * instances
    if instances == 1:
        return 0.0
    if way == "hsdp":
        models = 2 * (instances - 1) / instances
    else:
        models = (3 if way == "zero3" else 2) * (ranks - 1) / ranks
    return models * 2 * billions


def _fits(billions: float, way: str, instances: int) -> bool:
    return _gigabytes(billions, way, instances) + ACTIVATIONS <= GPU


def _right(billions: float, instances: int, budget: float) -> str:
    for way in WAYS:
        fits = _fits(billions, way, instances) and _sent_gb(billions, way, instances) <= budget
        if fits and (way, instances) != ("hsdp", 1):
            return way
    return "none"


def _choice_reason(billions: float, instances: int, budget: float, got: str, right: str) -> str:
    if got == "none":
        return (
            f"{right} needs {_gigabytes(billions, right, instances):g} GB, and 10 for activations, "
            f"and sends {_sent_gb(billions, right, instances):g} GB."
        )
    if (got, instances) == ("hsdp", 1):
        return "On one instance HSDP is ZeRO-3: call it zero3."
    needed, sent = _gigabytes(billions, got, instances), _sent_gb(billions, got, instances)
    if not _fits(billions, got, instances):
        return f"{got} needs {needed:g} GB, and 10 for activations: more than 80."
    if sent > budget:
        return f"{got} sends {sent:g} GB over the link."
    return f"{right} keeps to both limits, too, and comes first."
