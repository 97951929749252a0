"""What an all-reduce costs: the alpha-beta model.

A message of n bytes takes alpha + beta · n seconds. Messages of one round travel at the same
time, rounds follow each other. So an algorithm (all_reduces.py) is a list of rounds, and all else
is sums:

    link = Link.through((8, 40e-6), (8_000_000, 4e-3))           # two measured points
    estimated_seconds("ring", 1_000_000, 4, link)

Where ranks live on instances there are two tiers: inside an instance, and across, where all
messages share the instance's one link to the network:

    tiers = TwoTiers.from_measurements(job.events)         # scripts/demos/measure_all_reduce.py
    estimated_seconds("two_tier", 1_000_000, instances=2, ranks_per_instance=4, links=tiers)
    bound("two_tier", 1_000_000, instances=2, ranks_per_instance=4, bits_per_second=200e6)

The model knows nothing of the time to add numbers, nor of anything else that a machine does.
Against real jobs (`python -m tools.bench links`, 2 x 4 ranks, 100 to 400 Mbit/s, 24 points,
2026-11-22, 2 cores) its median error was 5 %, and its largest 22 %: short messages on the fastest
link. An algorithm that begins each receive just before it sends takes up to 1.5 times as long for
chunks of 128 KiB: gloo's sender waits for the receiver's word that it is ready, and that word
waits behind the bytes that travel the same way. So the ring begins its receives first.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from workshop.measure.all_reduces import (
    TWO_TIER_CHUNK_BYTES,
    Message,
    Placement,
    Rounds,
    bytes_by_instance,
    rounds,
)


@dataclass(frozen=True)
class Link:
    """The way between two ranks. alpha: seconds per message. beta: seconds per byte."""

    alpha: float
    beta: float

    def seconds(self, n_bytes: float) -> float:
        """How long one message takes."""
        return self.alpha + self.beta * n_bytes

    @classmethod
    def through(cls, small: tuple[int, float], large: tuple[int, float]) -> Link:
        """The link whose line goes through two measured points (bytes, seconds).

        Raises ValueError if the points are in the wrong order, or the larger message was faster.
        """
        (few, quick), (many, slow) = small, large
        if not 0 <= few < many:
            raise ValueError(f"{few} and {many} bytes: the first must be the smaller message.")
        if not 0 < quick < slow:
            raise ValueError(
                f"{many} bytes took {slow:.3g} s and {few} bytes {quick:.3g} s: the larger "
                "message must take longer. Is the machine busy? Measure again, with more repeats."
            )
        beta = (slow - quick) / (many - few)
        return cls(alpha=max(0.0, quick - beta * few), beta=beta)


@dataclass(frozen=True)
class SharedLinks:
    """Links that get slower when several work at the same time, as on one machine's cores.

    alone: one message travels. busy: `at_once` messages travel. Between the two, and beyond
    them, a straight line.
    """

    alone: Link
    busy: Link
    at_once: int

    def seconds(self, n_bytes: float, messages: int) -> float:
        """How long `messages` messages of n_bytes take, sent at the same time."""
        one, all_of_them = self.alone.seconds(n_bytes), self.busy.seconds(n_bytes)
        share = (messages - 1) / (self.at_once - 1) if self.at_once > 1 else 0.0
        return one + share * (all_of_them - one)


@dataclass(frozen=True)
class TwoTiers:
    """What a message costs inside an instance, and across.

    inside: shared by the messages of one instance. across: an instance's one link to the
    network, shared by the messages that leave it; and by those that enter it, apart from the
    first. None: not known, because nothing was measured there.
    """

    inside: SharedLinks | None
    across: SharedLinks | None

    def seconds(self, messages: list[Message], place: Placement) -> float:
        """How long one round takes: the two tiers work at the same time, the slower one counts.

        Raises ValueError if the round needs a tier that is not known.
        """
        within, crossing = _by_place(messages, place)
        seconds = [_of_tier(self.inside, one, "inside an instance") for one in within]
        seconds += [_of_tier(self.across, one, "across instances") for one in crossing]
        return max(seconds, default=0.0)

    @classmethod
    def from_measurements(cls, lines: Iterable[Mapping]) -> TwoTiers:
        """The tiers from the "link" records that scripts/demos/measure_all_reduce.py printed.

        lines: such as a JobResult's `events`; those of other kinds are passed over. Each has
        tier ("inside" or "across"), pairs (how many messages travelled at once in an instance,
        or left it), bytes (of each message) and seconds (each repeat's). The medians count, of
        the smallest and the largest message.

        Raises ValueError if there is no such record, or too few to draw a line through.
        """
        measured: dict[str, dict] = {"inside": defaultdict(dict), "across": defaultdict(dict)}
        for one in lines:
            if one.get("event") != "link":
                continue
            if one["tier"] not in measured:
                raise ValueError(f"Tier {one['tier']!r} is not known: inside or across.")
            median = statistics.median(one["seconds"])
            measured[one["tier"]][int(one["pairs"])][int(one["bytes"])] = median
        if not any(measured.values()):
            raise ValueError(
                'There is no record {"event": "link", ...}: run measure_all_reduce.py of '
                "scripts/demos."
            )
        return cls(**{tier: _shared(tier, by_pairs) for tier, by_pairs in measured.items()})


def _by_place(messages: list[Message], place: Placement) -> tuple[list, list]:
    """The messages that share something: inside an instance; out of one; into one."""
    within, out, into = defaultdict(list), defaultdict(list), defaultdict(list)
    for one in messages:
        source, to = place.instance_of(one.source), place.instance_of(one.to)
        if source == to:
            within[source].append(one)
        else:
            out[source].append(one)
            into[to].append(one)
    return list(within.values()), [*out.values(), *into.values()]


def _of_tier(links: SharedLinks | None, messages: list[Message], name: str) -> float:
    if links is None:
        raise ValueError(f"A message travels {name}, and no link there was measured.")
    mean = sum(one.n_bytes for one in messages) / len(messages)
    return links.seconds(mean, len(messages))


def _shared(tier: str, by_pairs: dict[int, dict[int, float]]) -> SharedLinks | None:
    if not by_pairs:
        return None
    fewest, most = min(by_pairs), max(by_pairs)
    alone, busy = (_link(tier, pairs, by_pairs[pairs]) for pairs in (fewest, most))
    return SharedLinks(alone, busy, at_once=1 if fewest == most else most)


def _link(tier: str, pairs: int, by_bytes: dict[int, float]) -> Link:
    few, many = min(by_bytes), max(by_bytes)
    if few == many:
        raise ValueError(
            f"Tier {tier}, {pairs} pair(s): only messages of {few} bytes were measured. A line "
            "needs a small and a large one."
        )
    if by_bytes[many] <= by_bytes[few]:
        # A busy machine: waiting for a core took longer than the bytes. They cost nothing visible.
        return Link(alpha=by_bytes[many], beta=0.0)
    return Link.through((few, by_bytes[few]), (many, by_bytes[many]))


def estimated_seconds(
    algorithm: str,
    n_bytes: float,
    ranks_per_instance: int,
    links: Link | SharedLinks | TwoTiers,
    instances: int = 1,
) -> float:
    """Seconds of one all-reduce of n_bytes.

    links: a Link if every rank has one to itself; SharedLinks if messages of the same round
    hinder each other; TwoTiers if ranks live on instances. The rest is as for `rounds`, and so
    are its errors.
    """
    place = Placement(instances, ranks_per_instance)
    if algorithm == "two_tier" and isinstance(links, TwoTiers):
        return two_tier_spans(n_bytes, ranks_per_instance, instances, links)[-1].end
    found = rounds(algorithm, n_bytes, ranks_per_instance, instances)
    return sum(_each_seconds(found, links, place))


@dataclass(frozen=True)
class Span:
    """What one tier does with one chunk, from start to end in seconds. tier: inside or across."""

    tier: str
    step: str
    chunk: int
    start: float
    end: float


def two_tier_spans(
    n_bytes: float,
    ranks_per_instance: int,
    instances: int,
    links: TwoTiers,
    chunks: int | None = None,
) -> list[Span]:
    """What each tier does when in a two-tier all-reduce of n_bytes; the last span ends it.

    While a chunk crosses the network, the next one is added up inside its instance. chunks: how
    many; None: as many as scripts/demos/collectives/two_tier.py makes. The rest, and the errors,
    are as for estimated_seconds.
    """
    count = chunks or max(1, int(n_bytes // TWO_TIER_CHUNK_BYTES))
    place = Placement(instances, ranks_per_instance)
    found = rounds("two_tier", n_bytes / count, ranks_per_instance, instances)
    seconds = _each_seconds(found, links, place)
    within = ranks_per_instance - 1  # rounds of the first step, and as many of the last
    scatter, gather = sum(seconds[:within]), sum(seconds[len(seconds) - within :])
    cross = sum(seconds[within : len(seconds) - within])
    spans, inside, network = [], 0.0, 0.0
    for chunk in range(count):
        spans.append(Span("inside", "reduce-scatter", chunk, inside, inside + scatter))
        inside += scatter
        start = max(network, inside)
        network = start + cross
        spans.append(Span("across", "all-reduce", chunk, start, network))
    for chunk, crossed in enumerate([one.end for one in spans if one.tier == "across"]):
        start = max(inside, crossed)
        inside = start + gather
        spans.append(Span("inside", "all-gather", chunk, start, inside))
    return spans


def _each_seconds(found: Rounds, links, place: Placement) -> list[float]:
    """How long each round takes. An algorithm repeats its rounds: each is worked out once."""
    kept: dict[int, float] = {}
    for messages in found:
        if id(messages) not in kept:
            kept[id(messages)] = _round_seconds(messages, links, place)
    return [kept[id(messages)] for messages in found]


def _round_seconds(messages: list[Message], links, place: Placement) -> float:
    if isinstance(links, TwoTiers):
        return links.seconds(messages, place)
    largest = max(one.n_bytes for one in messages)
    if isinstance(links, SharedLinks):
        return links.seconds(largest, len(messages))
    return links.seconds(largest)


def bound(
    algorithm: str,
    n_bytes: float,
    *,
    instances: int,
    ranks_per_instance: int,
    bits_per_second: float,
) -> float:
    """Seconds below which no all-reduce by this algorithm can go: bytes over a link by its rate.

    bits_per_second: of an instance's link, each direction. The busiest instance counts, in its
    busier direction. 0 on one instance, which sends nothing over the network.
    Raises ValueError for a rate that is not above 0.
    """
    if not bits_per_second > 0:
        raise ValueError(f"A link of {bits_per_second} bit/s: give a rate above 0.")
    passed = bytes_by_instance(algorithm, n_bytes, instances, ranks_per_instance)
    return 8 * max(max(one) for one in passed) / bits_per_second
