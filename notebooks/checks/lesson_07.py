"""Checks of lesson 07's exercises."""

from __future__ import annotations

import math

import numpy as np

from workshop.launch.ranks import RankFailed, start_ranks
from workshop.lesson.check import Wrong, exercise, unanswered

LABEL, SIDE, COLOURS = 1, 32, 3


@exercise("07.1")
def picture_of(answer) -> str:
    """A picture whose every byte is known, as a CIFAR-10 file holds it."""
    picture = np.random.default_rng(7).integers(0, 256, (SIDE, SIDE, COLOURS), dtype=np.uint8)
    flat = picture.transpose(2, 0, 1).tobytes()
    found = np.asarray(answer(bytes([3]) + flat))
    if found.shape != picture.shape:
        raise Wrong(f"The shape is {found.shape}; (32, 32, 3) was asked for: row, column, colour.")
    if np.array_equal(found, picture):
        return "Row, column, colour, and every pixel where it belongs."
    pixels = np.frombuffer(flat, np.uint8)
    if np.array_equal(found, pixels.reshape(SIDE, SIDE, COLOURS)):
        raise Wrong(
            "The shape is right and the pixels are scrambled: three neighbouring bytes are three "
            "pixels of one colour, not the three colours of one pixel. Colour comes first."
        )
    if np.array_equal(found, pixels.reshape(COLOURS, SIDE, SIDE).transpose(2, 1, 0)):
        raise Wrong("Rows and columns are exchanged: the picture lies on its side.")
    if np.array_equal(found[..., ::-1], picture):
        raise Wrong("Red and blue are exchanged: the file has red first.")
    raise Wrong("The pixels are not where they belong. Is the first byte, the label, left out?")


@exercise("07.2")
def most_gain(answer) -> str:
    """Several layouts, one instance among them."""
    for instances, each in ((2, 4), (2, 1), (2, 8), (8, 8), (64, 8), (1, 8), (1, 1)):
        ranks = instances * each
        flat, tiers = 2 * (ranks - 1) / ranks, 2 * (instances - 1) / instances
        right = flat / tiers if instances > 1 else 1.0
        asked = f"most_gain({instances}, {each})"
        try:
            got = answer(instances, each)
        except ZeroDivisionError as error:
            raise Wrong(
                f"{asked} divides by zero: one instance has no link to another. Return 1."
            ) from error
        if not isinstance(got, int | float):
            raise Wrong(f"{asked} is {got!r}; return a number.")
        if not math.isclose(got, right, rel_tol=1e-9):
            raise Wrong(f"{asked} is {right:.4g}, you said {got:.4g}. {_why(got, right, each)}")
    return "At most 2 times with many ranks on two instances; nearly nothing with many instances."


def _why(got: float, right: float, each: int) -> str:
    if math.isclose(got * right, 1, rel_tol=1e-9):
        return "That is upside down: the ring's bytes divided by the two tiers' bytes."
    if got == each:
        return "The ring in order does not send every rank's gradients across: only its ends do."
    return "Divide 2 (N - 1) / N, N ranks, by 2 (I - 1) / I, I instances."


@exercise("07.3", seconds=180)
def two_tier(answer) -> str:
    """On four real ranks, taken as two instances with two ranks each, and as one of four."""
    with start_ranks(4) as ranks:
        for length, each in ((12, 2), (1000, 2), (8, 4)):
            for rank, found in enumerate(_on_ranks(ranks, answer, length, each)):
                _check(found, rank, length, each)
    return "The whole sum on every rank, and only one part of it went across."


def _on_ranks(ranks, answer, length: int, each: int) -> list[dict]:
    try:
        return ranks.run("collectives.practice:call_in_tiers", answer, length, each, timeout=15)
    except RankFailed as error:
        told = str(error)
        if unanswered("07.3") in told:
            raise
        if "had not returned" in told:
            raise Wrong(
                "Your ranks wait for each other for ever. Every rank of a group must make the same "
                "calls on it, in the same order, with tensors of the same size."
            ) from error
        raise Wrong(f"A rank stopped:\n{told}") from error


def _check(found: dict, rank: int, length: int, each: int) -> None:
    at = f"{4 // each} instances with {each} ranks, {length} numbers: rank {rank}"
    if "values" not in found:
        raise Wrong(f"{at} returned {found['kind']}. Return a tensor.")
    right = [1000.0 + 4 * number for number in range(length)]
    if found["values"] != right:
        raise Wrong(f"{at} returned {_what(found['values'], right, rank, each)}")
    for name, where, numbers in found["calls"]:
        if where == "all":
            raise Wrong(f"{at} called dist.{name} without a group: that is a flat one, of all.")
        if where == "across" and numbers > length // each:
            raise Wrong(
                f"{at} gave dist.{name} {numbers} of {length} numbers to send across. The sum is "
                f"right, but {length // each} are enough: reduce-scatter inside first."
            )


def _what(values: list, right: list, rank: int, each: int) -> str:
    if len(values) != len(right):
        return f"{len(values)} numbers, not {len(right)}: gather all parts, and join them."
    first = rank // each * each
    own = [sum(100.0 * (one + 1) + n for one in range(first, first + each)) for n in range(4)]
    if values[:4] == own[: len(values)]:
        return "its own instance's sum: nothing went across."
    return f"{values[:3]} …, and {right[:3]} … was right."
