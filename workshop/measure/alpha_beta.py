"""Seconds and bytes of an algorithm, from its rounds."""

from __future__ import annotations

from workshop.costmodel.algorithms import ALGORITHMS, PLACED
from workshop.costmodel.links import Link, SharedLinks
from workshop.costmodel.messages import Message, Placement, Rounds
from workshop.costmodel.tiers import TwoTiers


def rounds(
    algorithm: str,
    n_bytes: float,
    world_size: int | None = None,
    *,
    instances: int = 1,
    ranks_per_instance: int | None = None,
) -> Rounds:
    """An algorithm's messages, round by round.

    Args:
        algorithm: of ALGORITHMS or PLACED.
        n_bytes: of the tensor that is reduced.
        world_size: ranks in all; or give ranks_per_instance.
        instances, ranks_per_instance: where the ranks live. One instance unless said.

    Raises ValueError for an unknown name, and for counts that make no sense.
    """
    if algorithm not in (*ALGORITHMS, *PLACED):
        raise ValueError(
            f"{algorithm!r} is not known. There are: {', '.join((*ALGORITHMS, *PLACED))}."
        )
    place = placement(world_size, instances, ranks_per_instance)
    if n_bytes < 0:
        raise ValueError(f"{n_bytes} bytes: a tensor has 0 or more.")
    if algorithm in ALGORITHMS:
        return ALGORITHMS[algorithm](n_bytes, place.world_size)
    return PLACED[algorithm](n_bytes, place)


def placement(
    world_size: int | None, instances: int = 1, ranks_per_instance: int | None = None
) -> Placement:
    """Where the ranks live. Raises ValueError if the three counts do not go together."""
    if world_size is None and ranks_per_instance is None:
        raise ValueError("How many ranks? Give world_size, or instances and ranks_per_instance.")
    if ranks_per_instance is None:
        if world_size < 1 or world_size % max(1, instances):
            raise ValueError(
                f"{world_size} ranks on {instances} instance(s): give at least one rank, and as "
                "many on each instance."
            )
        ranks_per_instance = world_size // max(1, instances)
    place = Placement(instances, ranks_per_instance)
    if world_size not in (None, place.world_size):
        raise ValueError(
            f"{instances} x {ranks_per_instance} ranks are {place.world_size}, and world_size is "
            f"{world_size}: leave one of them out."
        )
    return place


def predicted_seconds(
    algorithm: str,
    n_bytes: float,
    world_size: int | None = None,
    links: Link | SharedLinks | TwoTiers | None = None,
    *,
    instances: int = 1,
    ranks_per_instance: int | None = None,
) -> float:
    """Seconds of one all-reduce of n_bytes.

    links: a Link if every rank has one to itself; SharedLinks if messages of the same round
    hinder each other; TwoTiers if ranks live on instances. The rest is as for `rounds`, and so
    are its errors. Raises TypeError without links.
    """
    if links is None:
        raise TypeError("predicted_seconds() needs links: a Link, SharedLinks or TwoTiers.")
    place = placement(world_size, instances, ranks_per_instance)
    found = rounds(algorithm, n_bytes, place.world_size, instances=instances)
    # An algorithm repeats its rounds: each different one is worked out once.
    kept: dict[int, float] = {}
    for messages in found:
        if id(messages) not in kept:
            kept[id(messages)] = _round_seconds(messages, links, place)
    return sum(kept[id(messages)] for messages in found)


def _round_seconds(messages: list[Message], links, place: Placement) -> float:
    if isinstance(links, TwoTiers):
        return links.seconds(messages, place)
    largest = max(one.n_bytes for one in messages)
    if isinstance(links, SharedLinks):
        return links.seconds(largest, len(messages))
    return links.seconds(largest)


def bytes_by_rank(
    algorithm: str,
    n_bytes: float,
    world_size: int | None = None,
    *,
    instances: int = 1,
    ranks_per_instance: int | None = None,
) -> list[tuple[float, float]]:
    """(bytes sent, bytes received) of every rank in one all-reduce of n_bytes."""
    place = placement(world_size, instances, ranks_per_instance)
    sent, received = [0.0] * place.world_size, [0.0] * place.world_size
    for messages in rounds(algorithm, n_bytes, place.world_size, instances=instances):
        for one in messages:
            sent[one.source] += one.n_bytes
            received[one.to] += one.n_bytes
    return list(zip(sent, received, strict=True))


def bytes_by_instance(
    algorithm: str, n_bytes: float, instances: int, ranks_per_instance: int
) -> list[tuple[float, float]]:
    """(bytes out, bytes in) over every instance's link to the network, in one all-reduce."""
    place = Placement(instances, ranks_per_instance)
    out, into = [0.0] * instances, [0.0] * instances
    for messages in rounds(algorithm, n_bytes, place.world_size, instances=instances):
        for one in filter(place.crosses, messages):
            out[place.instance_of(one.source)] += one.n_bytes
            into[place.instance_of(one.to)] += one.n_bytes
    return list(zip(out, into, strict=True))


def busiest_link_bytes(algorithm: str, n_bytes: float, world_size: int) -> float:
    """Bytes over the busiest rank's own link to the network, in the busier direction."""
    return max(max(one) for one in bytes_by_rank(algorithm, n_bytes, world_size))


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
