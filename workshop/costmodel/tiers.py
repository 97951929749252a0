"""Two tiers of links: between the ranks of one instance, and between instances."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from workshop.costmodel.links import Link, SharedLinks
from workshop.costmodel.messages import Message, Placement


@dataclass(frozen=True)
class TwoTiers:
    """What a message costs inside an instance, and across.

    inside: shared by the messages of one instance. across: an instance's one link to the
    network, shared by the messages that leave it; and by those that enter it, apart from the
    first. None: not known, because nothing was measured there. prediction: made from documented
    figures, nothing was measured.
    """

    inside: SharedLinks | None
    across: SharedLinks | None
    prediction: bool = False

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
        """The tiers from the "link" records that scripts/measure_all_reduce.py printed.

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
                'There is no record {"event": "link", ...}: run scripts/measure_all_reduce.py.'
            )
        return cls(**{tier: _shared(tier, by_pairs) for tier, by_pairs in measured.items()})

    @classmethod
    def of_instance_type(
        cls, instance_type: str, alpha_inside: float = 0.0, alpha_across: float = 0.0
    ) -> TwoTiers:
        """A prediction from documented bandwidths, for one rank on each GPU.

        instance_type: such as "ml.p4d.24xlarge". alpha_inside, alpha_across: seconds that even an
        empty message takes; not documented, so 0 unless you know better. The figures with their
        sources: workshop/costmodel/documented.py, workshop.jobs.bandwidth.network_performance.

        Raises ValueError for a type without documented figures.
        """
        from workshop.costmodel import documented

        inside, across = documented.tiers(instance_type, alpha_inside, alpha_across)
        return cls(inside, across, prediction=True)


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
