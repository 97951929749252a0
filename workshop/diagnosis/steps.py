"""A step's time by rank, in the terms of the course: step = compute + wait + exposed communication.

The flight recorder notes when each rank called each collective. A collective ends for all at once,
so the rank that called it last made the others wait. (Clocks of several hosts differ: only ranks of
one host are compared.)
"""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from workshop.diagnosis.evidence import Collective, Evidence, Rank

MAX_PERIOD = 200  # collectives of a step
MIN_STEPS = 5
BYTES = {"Double": 8, "Long": 8, "Half": 2, "BFloat16": 2, "Byte": 1, "Char": 1, "Bool": 1}


@dataclass(frozen=True)
class StepTimes:
    """Of one rank, seconds per step, medians; shares of samples.

    seconds: the whole step. wait: for the last rank. communication: exposed, without the wait.
    data: share of the step in which it waited for data, 0 to 1. last: share of the steps in which
    it came last, in that third of the run in which it did least often. ended: Unix times of the
    steps' ends.
    """

    rank: int
    seconds: float
    wait: float
    communication: float
    data: float
    last: float
    ended: list[float]

    @property
    def compute(self) -> float:
        """What is left of the step, data included."""
        return max(self.seconds - self.wait - self.communication, 0.0)


@dataclass(frozen=True)
class Steps:
    """of_ranks: by rank. count: steps seen. mean: seconds of a step, with what lies between epochs.
    collectives, bytes: of a step, of one rank; with DDP, of its gradients."""

    of_ranks: list[StepTimes]
    count: int
    mean: float
    collectives: int
    bytes: int


@lru_cache(maxsize=1)
def step_times(evidence: Evidence) -> Steps | None:
    """None where the dumps show no steps: too few, or none that repeat."""
    groups = {call.group for rank in evidence.ranks for call in rank.collectives}
    if not groups or len(evidence.ranks) < 2:
        return None
    group = min(groups)
    calls = [
        {call.seq: call for call in rank.collectives if call.group == group}
        for rank in evidence.ranks
    ]
    everywhere = sorted(set.intersection(*(set(of_rank) for of_rank in calls)))
    common = [seq for seq in everywhere if not any(of_rank[seq].in_join for of_rank in calls)]
    # With DDP a step ends with its gradients, whatever else is called in some steps or in all.
    marks = [seq for seq in common if calls[0][seq].in_backward] or common
    period = _period([calls[0][seq] for seq in marks])
    if period is None:
        return None
    # Buckets of one size look alike; DDP knows how many there are in a step.
    models = evidence.ranks[0].objects.get("models", [])
    buckets = sum(len(model["buckets"].split(",")) for model in models if model["buckets"])
    if buckets > period and buckets % period == 0:
        period = buckets
    # Whole steps of the part that repeats, by the number of each one's last collective.
    last = _repeating(calls[0], marks, period)
    ends = last[::-1][::period][::-1]
    if len(ends) < MIN_STEPS:
        return None
    inside = marks[marks.index(ends[-1]) - period + 1 : marks.index(ends[-1]) + 1]
    waits = _longest_waits(calls, common, ends)
    return Steps(
        [
            _times_of_rank(rank, calls, index, ends, waits)
            for index, rank in enumerate(evidence.ranks)
        ],
        len(ends),
        (calls[0][ends[-1]].created - calls[0][ends[0]].created) / (len(ends) - 1),
        period,
        sum(_bytes(calls[0][seq]) for seq in inside),
    )


def _key(call: Collective) -> tuple:
    return call.op, call.sizes, call.place


def _period(calls: list[Collective]) -> int | None:
    """After how many collectives the sequence repeats; at its end something else may follow."""
    keys = [_key(call) for call in calls]
    for cut in range(min(8, len(keys))):
        part = keys[: len(keys) - cut][-4 * MAX_PERIOD :]
        for period in range(1, min(MAX_PERIOD, len(part) // MIN_STEPS) + 1):
            window = part[-MIN_STEPS * period :]
            if all(a == b for a, b in zip(window, window[period:], strict=False)):
                return period
    return None


def _repeating(calls: dict[int, Collective], common: list[int], period: int) -> list[int]:
    """The longest part of the common numbers, from the end, that repeats with this period."""
    keys = [_key(calls[seq]) for seq in common]
    end = len(keys)
    while end > period and keys[end - 1] != keys[end - 1 - period]:
        end -= 1
    begin = end - 1
    while begin >= period and keys[begin] == keys[begin - period]:
        begin -= 1
    return common[max(begin - period + 1, 0) : end]


def _longest_waits(calls: list[dict], common: list[int], ends: list[int]) -> list[int]:
    """The numbers of that collective of each step at which the ranks wait longest in all."""

    def waits(numbers: list[int]) -> float:
        created = [[of_rank[seq].created for of_rank in calls] for seq in numbers]
        return statistics.median(sum(max(times) - time for time in times) for times in created)

    places = [common.index(seq) for seq in ends]
    in_each = min(b - a for a, b in itertools.pairwise(places))
    candidates = ([common[place - back] for place in places[1:]] for back in range(in_each))
    return max(candidates, key=waits)


def _times_of_rank(
    rank: Rank, calls: list[dict], index: int, ends: list[int], waits: list[int]
) -> StepTimes:
    own_calls = calls[index]
    ended = [own_calls[seq].created for seq in ends]
    seconds = step_seconds(ended)
    latest = {seq: max(of_rank[seq].created for of_rank in calls) for seq in waits}
    wait = statistics.median(latest[seq] - own_calls[seq].created for seq in waits)
    late = [latest[seq] == own_calls[seq].created for seq in waits]
    third = len(late) // 3
    thirds = (late[:third], late[third:-third], late[-third:])
    last = min(statistics.mean(part) for part in thirds)
    seen = rank.samples(ended[0], ended[-1])
    total = sum(seen.values()) or 1
    share: defaultdict[str, float] = defaultdict(float)
    for place, count in seen.items():
        share[place[0]] += count / total
    exposed = min(_exposed(rank, share["communication"] * seconds, wait), max(seconds - wait, 0.0))
    return StepTimes(rank.number, seconds, wait, exposed, share["data"], last, ended)


def step_seconds(ended: Sequence[float]) -> float:
    """The median of the steps that ended at these times."""
    return statistics.median(b - a for a, b in itertools.pairwise(ended))


def _exposed(rank: Rank, inside: float, wait: float) -> float:
    """What DDP measured, where there is DDP; else the seconds that samples saw inside a call."""
    for model in rank.objects.get("models", []):
        if model["communication"]:
            return max(model["communication"] - model["overlap"] - wait, 0.0)
    return max(inside - wait, 0.0)


def _bytes(call: Collective) -> int:
    return call.elements * BYTES.get(call.dtypes.partition("/")[0], 4)
