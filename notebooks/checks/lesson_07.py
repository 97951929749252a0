"""Checks of lesson 07's exercises."""

from __future__ import annotations

import math

import torch

from workshop.launch.ranks import RankFailed, start_ranks
from workshop.lesson.check import Wrong, exercise, unanswered


@exercise("07.1")
def prepare(answer) -> str:
    """What several ranks prepare, added up in 16 bits as an all-reduce adds it."""
    for by_rank in (
        [[1.0, -2.5], [3.0, 0.5]],
        [[70_000.0, 1.0], [60_000.0, 3.0]],
        [[100_000.0], [-100_000.0], [40.0], [0.0]],
        [[800_000.0], *[[16.0]] * 15],  # infinite, too, where only a root of 16 divides it
    ):
        world_size, case = len(by_rank), f"With the gradients {by_rank} on {len(by_rank)} ranks, "
        sent = [_prepared(answer, gradients, world_size) for gradients in by_rank]
        total = sum(sent[1:], start=sent[0])
        right = torch.tensor(by_rank).mean(0)
        if torch.isfinite(total).all() and torch.allclose(total.float(), right, rtol=2e-3):
            continue
        got = total.tolist()
        if not torch.isfinite(torch.stack(sent)).all():
            raise Wrong(
                f"{case}a rank sends {[part.tolist() for part in sent]}: infinite before the sum. "
                "The largest float16 is 65,504. Divide before you convert."
            )
        if torch.allclose(total.float(), right * world_size, rtol=2e-3) or got == [math.inf] * len(
            got
        ):
            raise Wrong(f"{case}the sum is {got}, and the mean is {right.tolist()}: who divides?")
        raise Wrong(f"{case}the sum is {got}, and the mean is {right.tolist()}.")
    return "Divided first, so every part and the sum are finite, with half the bytes."


def _prepared(answer, gradients: list[float], world_size: int) -> torch.Tensor:
    given = torch.tensor(gradients)
    prepared = answer(given, world_size)
    if not isinstance(prepared, torch.Tensor):
        raise Wrong(f"You returned {prepared!r}: return the tensor that this rank sends.")
    if prepared.dtype != torch.float16:
        why = " It has 16 bits, too, but only 8 of them are for precision." * (
            prepared.dtype == torch.bfloat16
        )
        raise Wrong(f"You returned {prepared.dtype}, and float16 was asked for.{why}")
    if given.tolist() != gradients:
        raise Wrong(
            f"Your function changed the gradients that it was given, from {gradients} to "
            f"{given.tolist()}. They belong to DDP: make a new tensor."
        )
    return prepared


@exercise("07.2")
def most_gain(answer) -> str:
    """Several layouts, one instance among them."""
    for instances, each in ((2, 4), (2, 1), (2, 8), (8, 8), (64, 8), (1, 8), (1, 1)):
        ranks = instances * each
        flat, tiers = 2 * (ranks - 1) / ranks, 2 * (instances - 1) / instances
        right = flat / tiers if instances > 1 else 1.0
        call = f"most_gain({instances}, {each})"
        try:
            got = answer(instances, each)
        except ZeroDivisionError as error:
            raise Wrong(
                f"{call} divides by zero: one instance has no link to another. Return 1."
            ) from error
        if not isinstance(got, int | float):
            raise Wrong(f"{call} is {got!r}; return a number.")
        if not math.isclose(got, right, rel_tol=1e-9):
            raise Wrong(f"{call} is {right:.4g}, you said {got:.4g}. {_reason(got, right, each)}")
    return "At most 2 times with many ranks on two instances; nearly nothing with many instances."


def _reason(got: float, right: float, each: int) -> str:
    if math.isclose(got * right, 1, rel_tol=1e-9):
        return "That is upside down: the ring's bytes divided by the two tiers' bytes."
    if got == each:
        return (
            "In the ring in order only the ranks at its ends send over the network, not every rank."
        )
    return "Divide 2 (N - 1) / N, N ranks, by 2 (I - 1) / I, I instances."


@exercise("07.3", seconds=180)
def hierarchical(answer) -> str:
    """On four real ranks, taken as two instances with two ranks each, and as one of four."""
    with start_ranks(4) as ranks:
        for length, each in ((12, 2), (1000, 2), (8, 4)):
            results = _on_ranks(ranks, answer, length, each)
            for rank, result in enumerate(results):
                _check(result, rank, length, each)
            for first in range(0, len(results), each):
                _check_link(results[first : first + each], first // each, length)
    return "The whole sum on every rank, and over each instance's link only one sum went."


def _on_ranks(ranks, answer, length: int, each: int) -> list[dict]:
    try:
        return ranks.run("collectives.practice:call_in_tiers", answer, length, each, timeout=15)
    except RankFailed as error:
        message = str(error)
        if unanswered("07.3") in message:
            raise
        if "had not returned" in message:
            raise Wrong(
                "Your ranks wait for each other for ever. Every rank of a group must make the same "
                "calls on it, in the same order, with tensors of the same size."
            ) from error
        raise Wrong(f"A rank stopped:\n{message}") from error


def _check(result: dict, rank: int, length: int, each: int) -> None:
    at = f"{4 // each} instances with {each} ranks, {length} numbers: rank {rank}"
    if "values" not in result:
        raise Wrong(f"{at} returned {result['kind']}. Return a tensor.")
    right = [1000.0 + 4 * number for number in range(length)]
    if result["values"] != right:
        raise Wrong(f"{at} returned {_description(result['values'], right, rank, each)}")
    for name, where, _ in result["calls"]:
        if where == "all":
            raise Wrong(f"{at} called dist.{name} without a group: that is a flat one, of all.")


def _check_link(members: list[dict], instance: int, length: int) -> None:
    """Whether an instance's ranks together gave their inter-node groups no more than one sum."""
    calls = [call for member in members for call in member["calls"]]
    crossing = sum(numbers for _, where, numbers in calls if where == "inter_node")
    if crossing > length:
        raise Wrong(
            f"{4 // len(members)} instances with {len(members)} ranks, {length} numbers: the "
            f"ranks of instance {instance} gave their inter-node groups {crossing} numbers in all. "
            f"The sum is right, but {length} are enough: reduce-scatter intra-node first."
        )


def _description(values: list, right: list, rank: int, each: int) -> str:
    if len(values) != len(right):
        return f"{len(values)} numbers, not {len(right)}: gather all parts, and join them."
    first = rank // each * each
    instance_sum = [
        sum(100.0 * (member + 1) + n for member in range(first, first + each)) for n in range(4)
    ]
    if values[:4] == instance_sum[: len(values)]:
        return "its own instance's sum: nothing went inter-node."
    return f"{values[:3]} …, and {right[:3]} … was right."
