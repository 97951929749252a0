"""The checks of lesson 01's exercises."""

from __future__ import annotations

import copy
import functools
import sys
import tempfile
import textwrap
from collections import Counter
from pathlib import Path

import numpy as np

import data_prep
from workshop.launch.processes import INTERFACE, Processes, ProcessFailed, free_port
from workshop.launch.ranks import RankFailed, start_ranks
from workshop.lesson.check import Wrong, exercise, unanswered
from workshop.paths import DATA, TRAIN

SIZES = [(8, 4), (1437, 4), (10, 3), (7, 1), (3, 4), (64, 64), (1000, 7)]  # images, ranks
MISTAKES = ("unequal shards", "sum", "no broadcast", "no set_epoch", "inner model", "none")
EXAMPLE = {"images": 60, "steps": 10, "order_1": "3f", "order_2": "a0", "start": "77", "end": "1c"}
EXAMPLE |= {"loss": 2.1, "first_update": 0.3, "one_process_update": 0.3}
# Exercise 01.5: the lines of train_torch.py that give way, and where its imports end.
PLACES = {
    1: "rank, world_size = 0, 1",
    2: "sampler = RandomSampler(dataset, generator=torch.Generator())",
    3: "optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)",
    4: "sampler.generator.manual_seed(args.seed + epoch)  # a new order in each epoch",
    5: "loss = cross_entropy(model(images.to(device)), labels.to(device))",
    6: 'record = {"train_loss": torch.stack(losses).mean().item()}',
}
LAST_IMPORT = "from torch.utils.data import DataLoader, RandomSampler, TensorDataset\n"
NEW_IMPORTS = """import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler
"""
PARTS = [[16, 16, 16, 16], [40, 8, 8, 8], [1, 6], [5], [3, 2, 9]]  # images of each rank


@exercise("01.1")
def shard(answer) -> str:
    """Equal shards that share nothing and leave out as little as possible."""
    for images, world_size in SIZES:
        shards = [_numbers(answer(images, rank, world_size)) for rank in range(world_size)]
        where = f"With {images} images and {world_size} ranks"
        lengths = [len(part) for part in shards]
        if len(set(lengths)) > 1:
            raise Wrong(
                f"{where} the shards have {_short(lengths)} images. They must be equal: leave "
                "out the rest before you deal the images out."
            )
        _no_image_twice(where, shards)
        outside = [image for part in shards for image in part if not 0 <= image < images]
        if outside:
            raise Wrong(f"{where} there is no image number {outside[0]}: they go from 0.")
        most = images // world_size
        if lengths[0] != most:
            raise Wrong(
                f"{where} each rank gets {lengths[0]}; {most} would be possible. Leave out no "
                "more than the rest of the division."
            )
    return f"Equal shards and nothing twice, in {len(SIZES)} cases, and few left out."


def _no_image_twice(where: str, shards: list[list[int]]) -> None:
    counts = Counter(image for part in shards for image in part)
    double = [image for image, count in counts.items() if count > 1]
    if double:
        raise Wrong(
            f"{where} image {double[0]} is taken {counts[double[0]]} times. Each image may go to "
            "one rank only."
        )


def _numbers(returned) -> list[int]:
    try:
        values = [int(number) for number in returned]
    except (TypeError, ValueError):
        raise Wrong(f"It returned {returned!r}. Return a list of the images' numbers.") from None
    return values


def _short(values: list[int]) -> str:
    return ", ".join(map(str, values[:6])) + (", ..." if len(values) > 6 else "")


@exercise("01.2")
def put_in(answer) -> str:
    """What the ranks put in must add up to the mean over all images."""
    random = np.random.default_rng(1)
    for sizes in PARTS:
        by_image = random.normal(size=(sum(sizes), 3))
        shards = np.split(by_image, np.cumsum(sizes)[:-1])
        given = [part.mean(axis=0) for part in shards]
        pairs = zip(given, sizes, strict=True)
        terms = [np.asarray(answer(part.copy(), size, sum(sizes))) for part, size in pairs]
        if terms[0].shape != (3,):
            raise Wrong(
                f"It returns the shape {terms[0].shape} for a gradient of the shape (3,). The "
                "all-reduce adds arrays of equal shape."
            )
        _compare(sum(terms), by_image.mean(axis=0), np.mean(given, axis=0), sizes)
    return f"The sum is the gradient of the whole batch, for shards of {_short(PARTS[1])} too."


def _compare(total, right, plain_mean, sizes: list[int]) -> None:
    if np.allclose(total, right):
        return
    where = f"With shards of {_short(sizes)} images"
    images, ranks = sum(sizes), len(sizes)
    causes = [
        (plain_mean, "each rank counts the same, however many images it has"),
        (plain_mean * ranks, "the gradients are only added: nothing weights or divides them"),
        (right * images, f"the sum is {images} times too large: divide by all images"),
        (right * ranks, "it is world_size times too large"),
        (right / ranks, "it is world_size times too small: the sum needs no further division"),
    ]
    cause = next((description for value, description in causes if np.allclose(total, value)), None)
    ratio = np.linalg.norm(total) / np.linalg.norm(right)
    description = cause or f"its length is {ratio:.3g} times that of the right one"
    raise Wrong(
        f"{where} the all-reduce doesn't give the whole batch's gradient: {description}. A rank's "
        "weight is its share of all images."
    )


@exercise("01.3", seconds=300)
def train_together(answer) -> str:
    """Train on real ranks, and compare with one process on the same images."""
    for world_size in (2, 3):
        with start_ranks(world_size) as ranks:
            _check_trained(_trained(ranks, answer), world_size)
    return (
        "2 and 3 real ranks trained what one process trains, each on images of its own. (Averaging "
        "weights in place of gradients gives the same with SGD, and something else with Adam.)"
    )


def _trained(ranks, answer) -> list[dict]:
    try:
        ranks.run("parallel.practice:warm_up", timeout=120)
        return ranks.run("parallel.practice:call", answer, timeout=15)
    except RankFailed as error:
        if unanswered("01.3") in str(error):
            raise
        if "had not returned" in str(error):
            raise Wrong(
                "Your ranks wait for each other forever. Every rank must make each broadcast and "
                "each all_reduce, in the same order and equally often."
            ) from error
        raise Wrong(f"A rank stopped:\n{error}") from error


def _check_trained(results: list[dict], world_size: int) -> None:
    where = f"On {world_size} ranks:"
    images = [set(result["images"]) for result in results]
    if not all(images):
        raise Wrong(f"{where} a rank never called loss_of. Each must train on its part.")
    shared = set.intersection(*images)
    if len(shared) == results[0]["all_images"]:
        raise Wrong(f"{where} every rank took all {len(shared)} images. Give each rank a part.")
    counts = Counter(image for part in images for image in part)
    twice = [image for image, count in counts.items() if count > 1]
    if twice:
        raise Wrong(
            f"{where} {len(twice)} images were taken by more than one rank. Let the part depend "
            "on the rank."
        )
    if (left := results[0]["all_images"] - sum(map(len, images))) > 0:
        raise Wrong(f"{where} {left} images were taken by no rank.")
    first = np.array([result["first_weights"] for result in results])
    if not np.allclose(first, first[0]):
        raise Wrong(
            f"{where} at the first step the ranks have different weights, so they would average "
            "gradients of different models. Broadcast rank 0's weights first."
        )
    if not np.allclose(first[0], results[0]["given_weights"]):
        raise Wrong(f"{where} the training doesn't begin with rank 0's weights.")
    _check_end_weights(results, where, world_size)


def _check_end_weights(results: list[dict], where: str, world_size: int) -> None:
    end = np.array([result["weights"] for result in results])
    if np.allclose(end, results[0]["expected"], atol=1e-5):
        return
    if not np.allclose(end, end[0], atol=1e-6):
        raise Wrong(
            f"{where} the ranks end with different weights: their gradients were not averaged "
            "between backward() and step()."
        )
    moved = end[0] - np.array(results[0]["given_weights"])
    if np.allclose(end[0], results[0]["expected_of_the_sum"], atol=1e-5):
        raise Wrong(
            f"{where} each update is {world_size} times too long: all_reduce adds. Divide by the "
            "number of ranks."
        )
    raise Wrong(
        f"{where} all ranks end with the same weights, but one process gets others. They moved "
        f"by {np.linalg.norm(moved):.3g}; one process moves by "
        f"{np.linalg.norm(np.array(results[0]['expected']) - results[0]['given_weights']):.3g}. Is "
        "every gradient averaged, in each step?"
    )


@exercise("01.4", seconds=300)
def name_mistake(answer) -> str:
    """Name the planted mistakes from the evidence of real ranks."""
    # Before ranks are started: a right run, whose first update may be rounded otherwise.
    given, rounded = (answer([EXAMPLE | {"first_update": n} for _ in "01"]) for n in (0.3, 0.3001))
    _require_name(given)
    if given != rounded:
        raise Wrong(
            f"You call a first update of 0.3001 beside one process's 0.3 {rounded!r}. Added "
            "in another order, numbers differ in their last digits; a sum makes it much longer."
        )
    for world_size in (2, 3):
        with start_ranks(world_size) as ranks:
            runs = ranks.run("parallel.mistakes:mistakes")[0]
            for run, right in runs.items():
                evidence = ranks.run("parallel.mistakes:train", run)
                _compare_names(answer(copy.deepcopy(evidence)), right, evidence, run)
    return f"{len(runs)} runs, on 2 ranks and on 3: the evidence says which mistake was made."


def _require_name(given) -> None:
    if given not in MISTAKES:
        raise Wrong(f"{given!r} is no answer. They are: {', '.join(MISTAKES)}.")


def _compare_names(given, right: str, evidence: list[dict], run: str) -> None:
    where = f"Run {run} on {len(evidence)} ranks"
    _require_name(given)
    if given == right:
        return
    first = evidence[0]
    starts, ends, images = (
        [rank[name] for rank in evidence] for name in ("start", "end", "images")
    )
    length = first["first_update"] / first["one_process_update"]
    against = {
        "unequal shards": f"its ranks took {_short(images)} images",
        "sum": f"its first update is {length:.2f} times as long as one process's; a sum makes it "
        f"{len(evidence)} times as long, with equal weights on all ranks",
        "no broadcast": f"its ranks start with the weights {', '.join(starts)}",
        "no set_epoch": f"rank 0's two epochs have the orders {first['order_1']} and "
        f"{first['order_2']}",
        "inner model": f"its ranks start with the weights {', '.join(starts)} and end with "
        f"{', '.join(ends)}; DDP makes them equal at the start, and a model called without it "
        "lets them part",
        "none": "something in its evidence is not as in a right run: compare the ranks' hashes, "
        "their images, the two orders, the first update",
    }
    raise Wrong(f"{where} is not {given!r}: {against[given]}.")


@exercise("01.5", seconds=300)
def convert(answer) -> str:
    """Run the converted script on two ranks, and compare it with train_torch_ddp.py."""
    script = _converted(answer())
    losses, weights = _run_on_two_ranks((TRAIN / "train_torch_ddp.py").read_text())
    try:
        records = _records(script)
    except ProcessFailed as error:
        if "had not ended" in str(error):
            raise Wrong(
                "The ranks wait for each other forever. Every rank must make each all-reduce, "
                "equally often: do all call it, or only rank 0?"
            ) from None
        raise Wrong(f"A rank ended with an error. {error}") from None
    _check_records(records, losses, weights)
    return (
        "Two ranks printed one hash, the losses of train_torch_ddp.py, and as many steps. With a "
        "launcher's variables, checkpoints and GPUs added, that file is the one you wrote."
    )


def _converted(answer) -> str:
    """train_torch.py with the answer's lines. Raises Wrong for what can't be put into it."""
    if not isinstance(answer, dict) or set(answer) != set(PLACES):
        raise Wrong("Return a dictionary with the keys 1 to 6: what stands in place of each line.")
    text = (TRAIN / "train_torch.py").read_text().replace(LAST_IMPORT, LAST_IMPORT + NEW_IMPORTS)
    for number, line in PLACES.items():
        (old,) = (whole for whole in text.splitlines() if whole.strip() == line)
        indent = old[: len(old) - len(old.lstrip())]
        new = textwrap.dedent(str(answer[number])).strip("\n")
        text = text.replace(old, textwrap.indent(new, indent))
    try:
        compile(text, "converted.py", "exec")
    except SyntaxError as error:
        line = text.splitlines()[(error.lineno or 1) - 1].strip()
        raise Wrong(f"With your lines the file is no valid Python: {error.msg}: `{line}`") from None
    return text


@functools.cache
def _run_on_two_ranks(script: str) -> tuple[list[float], str]:
    """The epochs' losses, and the hash of the weights, of a script that is right."""
    records = _records(script)
    losses = [record["train_loss"] for record in records if record["event"] == "epoch"]
    return losses, next(r["weights_sha256"] for r in records if r["event"] == "weights")


def _records(script: str) -> list[dict]:
    """The JSON lines of a script on two ranks, started as torchrun does. Raises ProcessFailed."""
    digits = data_prep.digits.prepare(DATA / "digits", quiet=True)
    meet = {"WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1"}
    meet |= {"MASTER_PORT": free_port(), "OMP_NUM_THREADS": 1, "GLOO_SOCKET_IFNAME": INTERFACE}
    with tempfile.TemporaryDirectory(prefix="workshop-01-5-") as folder:
        path = Path(folder, "converted.py")
        path.write_text(script)
        command = [sys.executable, path, "--training", digits / "training"]
        command += ["--test", digits / "test", "--save-to", folder, "--log-every", 0]
        command += ["--epochs", 2, "--global-batch-size", 64]
        each = [{"RANK": rank, "LOCAL_RANK": rank} for rank in range(2)]
        with Processes([command, command], meet, each=each) as processes:
            processes.wait(timeout=100)
    return processes.events()


def _check_records(records: list[dict], losses: list[float], weights: str) -> None:
    by_event = {
        event: [record for record in records if record["event"] == event]
        for event in ("start", "epoch", "weights")
    }
    starts, epochs, hashes = by_event["start"], by_event["epoch"], by_event["weights"]
    if len(starts) != 1 or starts[0]["world_size"] != 2:
        sizes = _short([start["world_size"] for start in starts])
        raise Wrong(
            f"{len(starts)} of the 2 ranks printed a start line, with world_size {sizes}. Rank 0 "
            "must print one, with 2. Line 1: meet the others, then ask for rank and world_size."
        )
    steps = epochs[-1]["step"] // len(epochs)
    if steps != 22:
        raise Wrong(
            f"An epoch has {steps} steps; 1,437 images in batches of 64 are 22. Line 2: each rank "
            "takes its own part of the images, not all of them."
        )
    if len({record["weights_sha256"] for record in hashes}) > 1:
        raise Wrong(
            "The ranks end with different weights. DDP averages when the *wrapped* model was "
            "called: lines 3 and 5."
        )
    reported = [epoch["train_loss"] for epoch in epochs]
    near = [abs(a - b) < 2e-5 * b for a, b in zip(reported, losses, strict=True)]
    same_weights = hashes[0]["weights_sha256"] == weights
    if all(near):
        return
    if same_weights:
        raise Wrong(
            f"The weights are right, but the loss of epoch 1 is reported as {reported[0]:.4f}, "
            f"not {losses[0]:.4f}: rank 0's images alone, or a sum. Line 6: the mean of all ranks."
        )
    if near[0]:
        raise Wrong(
            "Epoch 1 is right and epoch 2 is not: its order of images is not a new one. Line 4."
        )
    raise Wrong(
        f"Both ranks hold the same weights, and other ones than train_torch_ddp.py: losses "
        f"{', '.join(f'{loss:.4f}' for loss in reported)}, not "
        f"{', '.join(f'{loss:.4f}' for loss in losses)}. Line 2: is the order shuffled, by "
        "args.seed? Line 3: is the optimizer the old one?"
    )
