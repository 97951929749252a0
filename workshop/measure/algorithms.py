"""The all-reduces as rounds of messages.

`ALGORITHMS` look at ranks alone. `PLACED` are those in which it matters where the ranks live, and
gloo's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from workshop.costmodel.messages import Message, Placement, Rounds

# gloo's own limit: kMaxSegmentSize in gloo/allreduce.h,
# https://github.com/facebookincubator/gloo, read 2026-11-21.
GLOO_SEGMENT_BYTES = 1024 * 1024


def naive(n_bytes: float, world_size: int) -> Rounds:
    """Everything to rank 0, one after the other; the sum back to all."""
    others = range(1, world_size)
    up = [[Message(rank, 0, n_bytes)] for rank in others]
    return up + [[Message(0, rank, n_bytes)] for rank in others]


def tree(n_bytes: float, world_size: int) -> Rounds:
    """Sums up a binomial tree to rank 0, and down again."""
    up, distance = [], 1
    while distance < world_size:
        senders = range(distance, world_size, 2 * distance)
        up.append([Message(rank, rank - distance, n_bytes) for rank in senders])
        distance *= 2
    return up + [[Message(one.to, one.source, n_bytes) for one in level] for level in reversed(up)]


def ring(n_bytes: float, world_size: int) -> Rounds:
    """Reduce-scatter, then all-gather: a chunk from every rank to the next, in every round."""
    return 2 * _passes(n_bytes / world_size, [range(world_size)])


def gloo(n_bytes: float, place: Placement) -> Rounds:
    """torch's own on gloo: a ring, downwards, with two segments of a chunk on their way at a time.

    Read in gloo/allreduce.cc. That version sends more than a ring where a chunk has more than two
    segments. The one in torch 2.13 does not: 1, 8 and 64 MiB on two ranks were counted on the
    interface (2026-11-21), and each rank sent what a ring sends.
    """
    size, chunk = place.world_size, n_bytes / place.world_size
    per_chunk = max(2, math.ceil(chunk / GLOO_SEGMENT_BYTES))
    pairs, single = divmod((size - 1) * per_chunk, 2)

    def at_a_time(segments: int) -> list[Message]:
        sent = segments * chunk / per_chunk
        return [Message(rank, (rank - 1) % size, sent) for rank in range(size)]

    return 2 * ([at_a_time(2)] * pairs + [at_a_time(1)] * single)


def blind_ring(n_bytes: float, place: Placement) -> Rounds:
    """A ring that knows nothing of instances: with two or more, each hop leaves one."""
    order = [
        place.rank_of(instance, local_rank)
        for local_rank in range(place.ranks_per_instance)
        for instance in range(place.instances)
    ]
    return 2 * _passes(n_bytes / place.world_size, [order])


def two_tier(n_bytes: float, place: Placement) -> Rounds:
    """Reduce-scatter inside, all-reduce of each part across, all-gather inside."""
    instances, local_ranks = range(place.instances), range(place.ranks_per_instance)
    within = [[place.rank_of(i, local) for local in local_ranks] for i in instances]
    peers = [[place.rank_of(i, local) for i in instances] for local in local_ranks]
    part = n_bytes / place.ranks_per_instance
    inside = _passes(part, within)
    return inside + 2 * _passes(part / place.instances, peers) + inside


def herring(n_bytes: float, place: Placement) -> Rounds:
    """A server on each instance: sums inside, a bucket to each server and back, out to the ranks.

    As scripts/collectives/herring.py does it: up and down inside an instance along a tree.
    """
    instances = range(place.instances)
    servers = [place.rank_of(instance, 0) for instance in instances]
    along = tree(n_bytes, place.ranks_per_instance)
    inside = [
        [
            Message(server + one.source, server + one.to, n_bytes)
            for server in servers
            for one in level
        ]
        for level in along
    ]
    half = len(inside) // 2
    bucket = n_bytes / place.instances
    swaps = [
        [Message(servers[i], servers[(i + away) % place.instances], bucket) for i in instances]
        for away in instances[1:]
    ]
    return inside[:half] + 2 * swaps + inside[half:]


def _passes(chunk: float, rings: Sequence[Sequence[int]]) -> Rounds:
    """Once around each ring, all rings at the same time: every rank passes a chunk to the next."""
    size = len(rings[0])
    hops = [(ring[at], ring[(at + 1) % size]) for ring in rings for at in range(size)]
    return [[Message(source, to, chunk) for source, to in hops]] * (size - 1)


ALGORITHMS: dict[str, Callable[[float, int], Rounds]] = {
    "naive": naive,
    "tree": tree,
    "ring": ring,
}
PLACED: dict[str, Callable[[float, Placement], Rounds]] = {
    "gloo": gloo,
    "blind_ring": blind_ring,
    "two_tier": two_tier,
    "herring": herring,
}
