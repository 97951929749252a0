"""The checks of lesson 01's exercises."""

from __future__ import annotations

import math
import numbers
from collections import Counter

import numpy as np

from workshop.lesson.check import Wrong, exercise

SIZES = [(8, 4), (1437, 4), (10, 3), (7, 1), (3, 4), (64, 64), (1000, 7)]  # images, ranks
PARTS = [[16, 16, 16, 16], [40, 8, 8, 8], [1, 6], [5], [3, 2, 9]]  # images of each rank


@exercise("01.1")
def shard(answer) -> str:
    """Equal shards that share nothing and leave out as little as possible."""
    for images, world_size in SIZES:
        shards = [_numbers(answer(images, rank, world_size)) for rank in range(world_size)]
        where = f"With {images} images and {world_size} ranks"
        lengths = [len(one) for one in shards]
        if len(set(lengths)) > 1:
            raise Wrong(
                f"{where} the shards have {_short(lengths)} images. They must be equal: leave "
                "out the rest before you deal the images out."
            )
        _no_image_twice(where, shards)
        outside = [one for part in shards for one in part if not 0 <= one < images]
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
    counts = Counter(one for part in shards for one in part)
    double = [one for one, count in counts.items() if count > 1]
    if double:
        raise Wrong(
            f"{where} image {double[0]} is taken {counts[double[0]]} times. Each image may go to "
            "one rank only."
        )


def _numbers(found) -> list[int]:
    try:
        values = [int(one) for one in found]
    except (TypeError, ValueError):
        raise Wrong(f"It returned {found!r}. Return a list of the images' numbers.") from None
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
        before = [one.copy() for one in given]
        pairs = zip(given, sizes, strict=True)
        terms = [np.asarray(answer(one, size, sum(sizes))) for one, size in pairs]
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
        (plain_mean * ranks, "the gradients are only added: nothing weighs or divides them"),
        (right * images, f"the sum is {images} times too large: divide by all images"),
        (right * ranks, "it is world_size times too large"),
        (right / ranks, "it is world_size times too small: the sum needs no further division"),
    ]
    cause = next((said for value, said in causes if np.allclose(total, value)), None)
    ratio = np.linalg.norm(total) / np.linalg.norm(right)
    said = cause or f"its length is {ratio:.3g} times that of the right one"
    raise Wrong(
        f"{where} the all-reduce gives another gradient than the whole batch: {said}. A rank's "
        "weight is its share of all images."
    )


@exercise("01.3")
def learning_rate(answer) -> str:
    """Start, line, end and plateau; no warm-up; nothing to scale."""
    for base, base_batch, batch, warmup in [(0.02, 32, 256, 15), (0.1, 256, 8192, 100)]:
        scaled = base * batch / base_batch

        def rate(step, warmup=warmup, base=base, base_batch=base_batch, batch=batch) -> float:
            return _number(answer(step, base, base_batch, batch, warmup))

        given = f"base_rate {base}, {base_batch} -> {batch} images"
        none, given = f"{given}, no warm-up", f"{given}, {warmup} warm-up steps"
        _is(rate(warmup), scaled, f"{given}: at step {warmup}", _scaling(base, scaled))
        _is(rate(0), base, f"{given}: at step 0", "The warm-up begins at base_rate.")
        for step in (1, warmup // 2, warmup - 1):
            value = base + step / warmup * (scaled - base)
            _is(rate(step), value, f"{given}: at step {step}", "The line must be straight.")
        for step in (warmup + 1, 10 * warmup):
            _is(rate(step), scaled, f"{given}: at step {step}", "After the warm-up it stays.")
        for step in (0, 1, 50):
            hint = "Without a warm-up it is the scaled rate from the first step on."
            _is(rate(step, warmup=0), scaled, f"{none}: at step {step}", hint)
    _is(_number(answer(5, 0.3, 64, 64, 10)), 0.3, "With an unchanged batch", "k is 1 then.")
    return "It starts at base_rate, reaches the scaled rate in a straight line, and stays."


def _scaling(base: float, scaled: float) -> str:
    k = scaled / base
    return f"The batch is {k:g} times as large, so the rate is {k:g} times base_rate."


def _is(found: float, right: float, where: str, hint: str) -> None:
    if not math.isclose(found, right, rel_tol=1e-6):
        raise Wrong(f"{where} it is {found:g}; it must be {right:g}. {hint}")


def _number(found) -> float:
    if isinstance(found, bool) or not isinstance(found, numbers.Real):
        raise Wrong(f"It returned {found!r}. Return the learning rate, a number.")
    return float(found)
