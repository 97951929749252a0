"""The checks of lesson 01's exercises."""

from __future__ import annotations

from collections import Counter

import numpy as np

from workshop.launch.ranks import RankFailed, start_ranks
from workshop.lesson.check import Wrong, exercise, unanswered

SIZES = [(8, 4), (1437, 4), (10, 3), (7, 1), (3, 4), (64, 64), (1000, 7)]  # images, ranks
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
        before = [gradient.copy() for gradient in given]
        pairs = zip(given, sizes, strict=True)
        terms = [np.asarray(answer(gradient, size, sum(sizes))) for gradient, size in pairs]
        if any(not np.array_equal(a, b) for a, b in zip(given, before, strict=True)):
            raise Wrong("It changes the gradient that it gets. Return a new array.")
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
