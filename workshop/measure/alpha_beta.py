"""What an all-reduce costs: the alpha-beta model.

A message of n bytes takes alpha + beta · n seconds. Messages of one step travel at the same
time, steps follow each other. So an algorithm (all_reduces.py) is a list of steps, and all else
is sums:

    link = Link.fit({8: 40e-6, 65_536: 75e-6, 8_000_000: 4e-3})  # measured messages
    estimated_seconds("ring", 1_000_000, 4, link)

Where ranks live on instances there are two tiers: intra-node, and inter-node, where all
messages share the instance's one link to the network:

    tiers = HierarchicalLinks.from_measurements(job.events)  # scripts/demos/measure_all_reduce.py
    estimated_seconds("hierarchical", 1_000_000, instances=2, ranks_per_instance=4, links=tiers)
    bound("hierarchical", 1_000_000, instances=2, ranks_per_instance=4, bits_per_second=200e6)

What it knows: messages and how they share links, and the time of adding. It knows nothing of
Python, nor of a wait for a core; so it is a model of links that are slower than the machine.
held_out.py tests it where it was not fitted.

A message is timed as a step of a ring, which begins all receives of a phase before its first send.
If each receive began just before its send, gloo's sender would wait for the receiver's word that it
is ready, and that word waits behind the bytes that travel the same way. The sizes to fit are those
of the chunks to predict, from some kB: a message of 8 bytes finds both processes asleep, and waking
them takes longer than anything in the middle of an all-reduce.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from workshop.measure.all_reduces import (
    HIERARCHICAL_CHUNK_BYTES,
    Message,
    Placement,
    Steps,
    bytes_added,
    bytes_by_instance,
    steps,
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
    def fit(cls, seconds: Mapping[int, float]) -> Link:
        """The link that comes nearest to messages of three sizes or more.

        seconds: those of a message, by its bytes. Relative errors count, so that a message of 8
        bytes weighs as much as one of a megabyte; neither alpha nor beta gets below 0.
        Raises ValueError for fewer sizes, and for seconds that are not above 0.
        """
        if len(seconds) < 3 or min(seconds.values()) <= 0:
            raise ValueError(
                f"{dict(seconds)}: give the seconds, above 0, of messages of three sizes or more."
            )
        sizes, times = (np.array(values, float) for values in zip(*seconds.items(), strict=True))
        terms = np.stack([np.ones(len(sizes)), sizes], axis=1) / times[:, np.newaxis]
        (alpha, beta), _ = nnls(terms, np.ones(len(sizes)))
        return cls(float(alpha), float(beta))


@dataclass(frozen=True)
class SharedLinks:
    """Links that get slower when several work at the same time, as on one machine's cores.

    alone: `fewest` messages travel. busy: `at_once` messages travel. Between the two, and above
    them, a straight line.
    """

    alone: Link
    busy: Link
    at_once: int
    fewest: int = 1

    def seconds(self, n_bytes: float, messages: int) -> float:
        """How long `messages` messages of n_bytes take, sent at the same time."""
        alone, busy = self.alone.seconds(n_bytes), self.busy.seconds(n_bytes)
        if self.at_once == self.fewest:
            return alone
        share = max(0.0, (messages - self.fewest) / (self.at_once - self.fewest))
        return alone + share * (busy - alone)


@dataclass(frozen=True)
class HierarchicalLinks:
    """What a message costs within an instance, and between instances.

    intra_node: shared by the messages of one instance. inter_node: an instance's one link to the
    network, shared by the messages that leave it; and by those that enter it, apart from the
    first. None: not known, because nothing was measured there. adding: seconds per byte that a
    rank adds.
    """

    intra_node: SharedLinks | None
    inter_node: SharedLinks | None
    adding: float = 0.0

    def seconds(self, messages: list[Message], placement: Placement) -> float:
        """How long one step takes: all of them work at the same time, the slowest one counts.

        Raises ValueError if the step needs a tier that is not known.
        """
        within, crossing = _by_placement(messages, placement)
        seconds = [_tier_seconds(self.intra_node, group, "within an instance") for group in within]
        seconds += [
            _tier_seconds(self.inter_node, group, "between instances") for group in crossing
        ]
        return max(seconds, default=0.0)

    @classmethod
    def from_measurements(cls, records: Iterable[Mapping]) -> HierarchicalLinks:
        """The tiers from the "link" records that scripts/demos/measure_all_reduce.py printed.

        records: such as a JobResult's `events`; those of other kinds are passed over. Each has
        tier ("intra_node" or "inter_node"), pairs (how many messages travelled at once in an
        instance, or left it), bytes (of each message) and seconds (each repeat's). A line is
        fitted to the least of them, because other programs can only add time. An "add" record
        gives the time of adding.

        Raises ValueError if there is no such record, or fewer than three sizes.
        """
        records = list(records)
        measured: dict[str, dict] = {"intra_node": {}, "inter_node": {}}
        for record in records:
            if record.get("event") == "link":
                by_bytes = measured[record["tier"]].setdefault(record["pairs"], {})
                by_bytes[record["bytes"]] = min(record["seconds"])
        if not any(measured.values()):
            raise ValueError(
                'There is no record {"event": "link", ...}: run measure_all_reduce.py of '
                "scripts/demos."
            )
        added = [
            min(record["seconds"]) / record["bytes"]
            for record in records
            if record.get("event") == "add"
        ]
        return cls(
            # A pair of ranks inside an instance passes two messages, one each way.
            intra_node=_shared(measured["intra_node"], least=2),
            inter_node=_shared(measured["inter_node"], least=1),
            adding=added[0] if added else 0.0,
        )


def _by_placement(messages: list[Message], placement: Placement) -> tuple[list, list]:
    """The messages that share something: within an instance; out of one; into one."""
    within, out, into = defaultdict(list), defaultdict(list), defaultdict(list)
    for message in messages:
        source, to = placement.instance_of(message.source), placement.instance_of(message.to)
        if source == to:
            within[source].append(message)
        else:
            out[source].append(message)
            into[to].append(message)
    return list(within.values()), [*out.values(), *into.values()]


def _tier_seconds(links: SharedLinks | None, messages: list[Message], name: str) -> float:
    if links is None:
        raise ValueError(f"A message travels {name}, and no link there was measured.")
    mean = sum(message.n_bytes for message in messages) / len(messages)
    return links.seconds(mean, len(messages))


def _shared(by_pairs: dict[int, dict[int, float]], least: int) -> SharedLinks | None:
    """least: how many messages one pair of ranks passes at once."""
    if not by_pairs:
        return None
    by_count = {max(pairs, least): by_bytes for pairs, by_bytes in by_pairs.items()}
    fewest, most = min(by_count), max(by_count)
    alone, busy = (Link.fit(by_count[count]) for count in (fewest, most))
    return SharedLinks(alone, busy, at_once=most, fewest=fewest)


def estimated_seconds(
    algorithm: str,
    n_bytes: float,
    ranks_per_instance: int,
    links: Link | HierarchicalLinks,
    instances: int = 1,
) -> float:
    """Seconds of one all-reduce of n_bytes.

    links: a Link if every rank has one to itself; HierarchicalLinks if ranks live on instances.
    The rest, and the errors, are as for `steps`.
    """
    if isinstance(links, Link):
        messages_by_step = steps(algorithm, n_bytes, ranks_per_instance, instances)
        return sum(
            links.seconds(max(message.n_bytes for message in messages))
            for messages in messages_by_step
        )
    # Of a large tensor a hierarchical all-reduce makes chunks, as the script of that name does.
    chunks = max(1, int(n_bytes // HIERARCHICAL_CHUNK_BYTES)) if algorithm == "hierarchical" else 1
    place = (n_bytes / chunks, ranks_per_instance, instances)
    seconds = _seconds_by_step(
        steps(algorithm, *place), links, Placement(instances, ranks_per_instance)
    )
    adding = links.adding * bytes_added(algorithm, *place)
    if algorithm != "hierarchical":
        return sum(seconds) + adding
    within = ranks_per_instance - 1  # steps of the reduce-scatter, and as many of the all-gather
    adding_within = links.adding * n_bytes / chunks * within / ranks_per_instance
    return pipelined(
        chunks,
        scatter=sum(seconds[:within]) + adding_within,
        cross=sum(seconds[within : len(seconds) - within]) + adding - adding_within,
        gather=sum(seconds[len(seconds) - within :]),
    )


def pipelined(chunks: int, scatter: float, cross: float, gather: float) -> float:
    """Seconds of a hierarchical all-reduce of so many chunks, from those of a chunk's three phases.

    While a chunk crosses the network, the next one is added up within its instance.
    """
    within_end = network_end = 0.0
    crossed = []
    for _ in range(chunks):
        within_end += scatter
        network_end = max(network_end, within_end) + cross
        crossed.append(network_end)
    for end in crossed:
        within_end = max(within_end, end) + gather
    return within_end


def _seconds_by_step(
    messages_by_step: Steps, links: HierarchicalLinks, placement: Placement
) -> list[float]:
    """How long each step takes. An algorithm repeats its steps: each is computed once."""
    cache: dict[int, float] = {}
    for messages in messages_by_step:
        if id(messages) not in cache:
            cache[id(messages)] = links.seconds(messages, placement)
    return [cache[id(messages)] for messages in messages_by_step]


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
    return 8 * max(max(out_and_in) for out_and_in in passed) / bits_per_second
