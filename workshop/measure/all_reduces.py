"""The all-reduces as steps of messages: who sends what to whom, and the bytes that each passes.

steps("ring", 1_000_000, 4)
bytes_by_instance("hierarchical", 1_000_000, instances=2, ranks_per_instance=4)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# gloo's own limit: kMaxSegmentSize in gloo/allreduce.h,
# https://github.com/facebookincubator/gloo, read 2026-11-21.
GLOO_SEGMENT_BYTES = 1024 * 1024
# CHUNK_BYTES of scripts/demos/collectives/hierarchical.py.
HIERARCHICAL_CHUNK_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True)
class Message:
    """n_bytes from rank `source` to rank `to`."""

    source: int
    to: int
    n_bytes: float


# Messages of one step travel at the same time; steps follow each other.
Steps = list[list[Message]]


@dataclass(frozen=True)
class Placement:
    """Ranks on instances, instance by instance, as mpirun and torchrun place them.

    Raises ValueError unless both are whole numbers from 1 on.
    """

    instances: int
    ranks_per_instance: int

    def __post_init__(self) -> None:
        for name in ("instances", "ranks_per_instance"):
            count = getattr(self, name)
            if not isinstance(count, int) or count < 1:
                raise ValueError(f"{name} is {count!r}: give a whole number, at least 1.")

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        return self.instances * self.ranks_per_instance

    def instance_of(self, rank: int) -> int:
        """The number of the instance that `rank` lives on."""
        return rank // self.ranks_per_instance

    def rank_of(self, instance: int, local_rank: int) -> int:
        """The rank with that local_rank on that instance."""
        return instance * self.ranks_per_instance + local_rank

    def crosses(self, message: Message) -> bool:
        """Whether the message leaves its instance."""
        return self.instance_of(message.source) != self.instance_of(message.to)


def naive(n_bytes: float, placement: Placement) -> Steps:
    """Everything to rank 0, one after the other; the sum back to all."""
    others = range(1, placement.world_size)
    up = [[Message(rank, 0, n_bytes)] for rank in others]
    return up + [[Message(0, rank, n_bytes)] for rank in others]


def tree(n_bytes: float, placement: Placement) -> Steps:
    """Sums up a binomial tree to rank 0, and down again."""
    up, distance = [], 1
    while distance < placement.world_size:
        senders = range(distance, placement.world_size, 2 * distance)
        up.append([Message(rank, rank - distance, n_bytes) for rank in senders])
        distance *= 2
    return up + [
        [Message(sent.to, sent.source, n_bytes) for sent in level] for level in reversed(up)
    ]


def ring(n_bytes: float, placement: Placement) -> Steps:
    """Reduce-scatter, then all-gather: a chunk from every rank to the next, in every step."""
    return 2 * _passes(n_bytes / placement.world_size, [range(placement.world_size)])


def gloo(n_bytes: float, placement: Placement) -> Steps:
    """torch's own on gloo: a ring, downwards, with two segments of a chunk on their way at a time.

    Read in gloo/allreduce.cc. That version sends more than a ring where a chunk has more than two
    segments. The one in torch 2.13 does not: 1, 8 and 64 MiB on two ranks were counted on the
    interface (2026-11-21), and each rank sent what a ring sends.
    """
    size, chunk = placement.world_size, n_bytes / placement.world_size
    per_chunk = max(2, math.ceil(chunk / GLOO_SEGMENT_BYTES))
    pairs, single = divmod((size - 1) * per_chunk, 2)

    def at_a_time(segments: int) -> list[Message]:
        sent = segments * chunk / per_chunk
        return [Message(rank, (rank - 1) % size, sent) for rank in range(size)]

    return 2 * ([at_a_time(2)] * pairs + [at_a_time(1)] * single)


def interleaved_ring(n_bytes: float, placement: Placement) -> Steps:
    """A ring that ignores the topology: on two or more instances, each hop leaves one."""
    order = [
        placement.rank_of(instance, local_rank)
        for local_rank in range(placement.ranks_per_instance)
        for instance in range(placement.instances)
    ]
    return 2 * _passes(n_bytes / placement.world_size, [order])


def hierarchical(n_bytes: float, placement: Placement) -> Steps:
    """Reduce-scatter intra-node, all-reduce of each part inter-node, all-gather intra-node.

    The steps of one chunk; alpha_beta.pipelined lets the chunks overlap.
    """
    instances, local_ranks = range(placement.instances), range(placement.ranks_per_instance)
    within = [[placement.rank_of(i, local) for local in local_ranks] for i in instances]
    peers = [[placement.rank_of(i, local) for i in instances] for local in local_ranks]
    part = n_bytes / placement.ranks_per_instance
    intra_node = _passes(part, within)
    return intra_node + 2 * _passes(part / placement.instances, peers) + intra_node


def mini_herring(n_bytes: float, placement: Placement) -> Steps:
    """A server on each instance sums intra-node; then each bucket goes to its server and back.

    As collectives/mini_herring.py does it: up and down inside an instance along a tree.
    """
    instances = range(placement.instances)
    servers = [placement.rank_of(instance, 0) for instance in instances]
    along = tree(n_bytes, Placement(1, placement.ranks_per_instance))
    intra_node = [
        [
            Message(server + hop.source, server + hop.to, n_bytes)
            for server in servers
            for hop in level
        ]
        for level in along
    ]
    half = len(intra_node) // 2
    bucket = n_bytes / placement.instances
    swaps = [
        [Message(servers[i], servers[(i + away) % placement.instances], bucket) for i in instances]
        for away in instances[1:]
    ]
    return intra_node[:half] + 2 * swaps + intra_node[half:]


def _passes(chunk: float, rings: Sequence[Sequence[int]]) -> Steps:
    """Once around each ring, all rings at the same time: every rank passes a chunk to the next."""
    size = len(rings[0])
    hops = [(ring[at], ring[(at + 1) % size]) for ring in rings for at in range(size)]
    return [[Message(source, to, chunk) for source, to in hops]] * (size - 1)


ALGORITHMS: dict[str, Callable[[float, Placement], Steps]] = {
    algorithm.__name__: algorithm
    for algorithm in (naive, tree, ring, gloo, interleaved_ring, hierarchical, mini_herring)
}


def steps(algorithm: str, n_bytes: float, ranks_per_instance: int, instances: int = 1) -> Steps:
    """An algorithm's messages, step by step.

    Args:
        algorithm: of ALGORITHMS.
        n_bytes: of the tensor that is reduced.
        ranks_per_instance, instances: where the ranks live; by default on one instance.

    Raises ValueError for an unknown name, and for counts that make no sense.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"{algorithm!r} is not known. There are: {', '.join(ALGORITHMS)}.")
    if n_bytes < 0:
        raise ValueError(f"{n_bytes} bytes: a tensor has 0 or more.")
    return ALGORITHMS[algorithm](n_bytes, Placement(instances, ranks_per_instance))


def bytes_added(
    algorithm: str, n_bytes: float, ranks_per_instance: int, instances: int = 1
) -> float:
    """Bytes that the rank which adds the most adds to its own, in one all-reduce of n_bytes.

    The arguments are as for `steps`.
    """
    size = Placement(instances, ranks_per_instance).world_size
    once = n_bytes * (size - 1) / size
    levels = math.ceil(math.log2(ranks_per_instance))
    added = {
        "naive": n_bytes * (size - 1),
        "tree": n_bytes * math.ceil(math.log2(size)),
        "mini_herring": n_bytes * (levels + (instances - 1) / instances),
    }
    return added.get(algorithm, once)


def bytes_by_instance(
    algorithm: str, n_bytes: float, instances: int, ranks_per_instance: int
) -> list[tuple[float, float]]:
    """(bytes out, bytes in) over every instance's link to the network, in one all-reduce."""
    placement = Placement(instances, ranks_per_instance)
    out, into = [0.0] * instances, [0.0] * instances
    for messages in steps(algorithm, n_bytes, ranks_per_instance, instances):
        for message in filter(placement.crosses, messages):
            out[placement.instance_of(message.source)] += message.n_bytes
            into[placement.instance_of(message.to)] += message.n_bytes
    return list(zip(out, into, strict=True))
