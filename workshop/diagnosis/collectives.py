"""The ranks' flight recorders, compared: where their sequences of collectives part.

In each group the n-th collective of every rank must be the same: operation, size, type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from workshop.diagnosis.evidence import Collective, Evidence, Place, Rank


@dataclass(frozen=True)
class Mismatch:
    """Two ranks whose calls with the same number differ. kind: what differs."""

    kind: str  # "operation", "size", "type", "order"
    first: tuple[Rank, Collective]
    second: tuple[Rank, Collective]


@dataclass(frozen=True)
class Waiting:
    """Ranks that wait in a collective for those that have not called it."""

    collective: Collective
    ranks: list[Rank]
    missing: list[Rank]


def by_group(evidence: Evidence) -> Iterator[dict[int, dict[int, Collective]]]:
    """Of each group: rank -> number of the call -> the call."""
    names = {collective.group for rank in evidence.ranks for collective in rank.collectives}
    for name in sorted(names):
        calls = {
            rank.number: {call.seq: call for call in rank.collectives if call.group == name}
            for rank in evidence.ranks
        }
        callers = {number: of_rank for number, of_rank in calls.items() if of_rank}
        # Who is in a group besides its callers, nobody knows; with one caller somebody must be.
        yield callers if len(callers) > 1 else calls


@lru_cache(maxsize=1)
def first_mismatch(evidence: Evidence) -> Mismatch | None:
    """The first number with which two ranks call something else."""
    for calls in by_group(evidence):
        numbers = sorted({seq for of_rank in calls.values() for seq in of_rank})
        for seq in numbers:
            there = [(rank, calls[rank][seq]) for rank in sorted(calls) if seq in calls[rank]]
            for number, call in there[1:]:
                if kind := _difference(there[0][1], call):
                    kind = "order" if _is_swapped(calls, there[0][0], number, seq) else kind
                    pair = [_rank(evidence, there[0]), _rank(evidence, (number, call))]
                    return Mismatch(kind, *pair)
    return None


def _rank(evidence: Evidence, pair: tuple[int, Collective]) -> tuple[Rank, Collective]:
    rank = evidence.rank(pair[0])
    assert rank is not None
    return rank, pair[1]


def _difference(one_call: Collective, other: Collective) -> str:
    if one_call.op != other.op:
        return "operation"
    # Scatter and gather have sizes on the root alone; with all-to-all they may differ.
    if not one_call.op.startswith(("all_reduce", "broadcast", "all_gather", "allgather")):
        return ""
    if one_call.elements != other.elements:
        return "size"
    return "type" if one_call.dtypes != other.dtypes else ""


def _is_swapped(calls: dict, first: int, second: int, seq: int) -> bool:
    """Whether each of two ranks soon calls what the other calls now."""

    def soon(number: int) -> list[Collective]:
        return [calls[number][n] for n in range(seq + 1, seq + 4) if n in calls[number]]

    now = calls[first][seq], calls[second][seq]
    ahead = [any(_difference(now[1], call) == "" for call in soon(first))]
    ahead.append(any(_difference(now[0], call) == "" for call in soon(second)))
    # The rank that hangs in the first of two calls never comes to its second.
    sizes_only = now[0].op == now[1].op
    return sizes_only and now[0].place != now[1].place and (all(ahead) or any(ahead))


def calls_of_line(evidence: Evidence, mismatch: Mismatch) -> tuple[dict[int, int], Place] | None:
    """rank -> how often it called what the rank with more calls still calls, and where; or None.

    A rank with fewer batches leaves the loop earlier: its next call is one from behind the loop.
    """
    for _, call in (mismatch.first, mismatch.second):
        counts = {
            rank.number: Counter(c.place for c in rank.collectives if c.group == call.group)[
                call.place
            ]
            for rank in evidence.ranks
        }
        if min(counts.values()) > 1 and len(set(counts.values())) > 1:
            return counts, call.place
    return None


def waiting(evidence: Evidence) -> Waiting | None:
    """Who waits for whom in the earliest collective that did not end; None if nobody does."""
    for calls in by_group(evidence):
        pending = {
            rank.number: rank.pending[0]
            for rank in evidence.ranks
            if rank.pending
            and rank.pending[0].seq in calls.get(rank.number, {})
            and calls[rank.number][rank.pending[0].seq] is rank.pending[0]
        }
        everywhere = set.intersection(*(set(of_rank) for of_rank in calls.values()))
        pending = {rank: call for rank, call in pending.items() if call.seq not in everywhere}
        if not pending:
            continue
        first = min(pending.values(), key=lambda call: call.seq)
        here = [number for number, call in pending.items() if call.seq == first.seq]
        missing = [number for number, of_rank in calls.items() if first.seq not in of_rank]
        ranks = [rank for rank in evidence.ranks if rank.number in here]
        return Waiting(first, ranks, [r for r in evidence.ranks if r.number in missing])
    return None
