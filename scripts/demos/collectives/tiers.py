"""Measure the two tiers of a job's network, intra-node and inter-node.

Every function is called on all ranks. Which rank is on which instance: see placement.py.
"""

from pathlib import Path

import torch
import torch.distributed as dist

from collectives import wire
from collectives.placement import equal_instances, instance_of
from collectives.timing import algorithm_of, in_turns, there_and_back

TIERS = ("intra_node", "inter_node")
NETWORK_CARDS = Path("/proc/net/dev")  # Linux: bytes and packets of each card, see proc(5)


def message_seconds(
    tier: str, pairs: int, n_bytes: int, calls: int, blocks: int
) -> list[float] | None:
    """Seconds of one message one way, by block: those of the slowest rank.

    Args:
        tier: "intra_node": from a rank to the next one of its instance. "inter_node": from a rank
            to the one with the same local_rank on the next instance.
        pairs: 1: a single message, there and back; half of it is given, all else is silent.
            The number of ranks per instance: every rank sends one at the same time, as in a ring.
        n_bytes: of one message.
        calls, blocks: how many calls a block has, and how many blocks there are.

    Returns None where the tier has no message: intra-node, if an instance has one rank;
    inter-node, if there is one instance. A first call, which opens the connections, is not counted.
    """
    ranks_by_instance = equal_instances()
    ring = _ring_for(tier, ranks_by_instance, dist.get_rank())
    if len(ring) == 1:
        return None
    if pairs not in (1, len(ranks_by_instance[0])):
        raise ValueError(
            f"{pairs} pairs: 1 or {len(ranks_by_instance[0])}, the ranks of an instance."
        )
    outgoing, incoming = torch.zeros(2, n_bytes, dtype=torch.uint8)
    if pairs == 1:
        first, second = _ring_for(tier, ranks_by_instance, 0)[:2]

        def ping_pong() -> None:
            there_and_back(first, second, outgoing, incoming)

        round_trips = in_turns({tier: ping_pong}, calls, blocks)[tier]
        return slowest([seconds / 2 for seconds in round_trips])
    rank, order = wire.place_in(ring)
    to, source = order[(rank + 1) % len(order)], order[rank - 1]

    def in_a_row() -> None:
        """As a ring sends them: all receives begin first."""
        receives = [wire.begin_to_receive(incoming, source) for _ in range(calls)]
        for receive in receives:
            wire.send(outgoing, to)
            receive.wait()

    return slowest([seconds / calls for seconds in in_turns({tier: in_a_row}, 1, blocks)[tier]])


def card_bytes(algorithm: str, n_bytes: int) -> list[tuple[int, int]] | None:
    """What the network cards counted in one all-reduce of n_bytes: (sent, received), by rank.

    With the packets' headers and acknowledgements. None where the system keeps no such counts
    (/proc/net/dev of Linux). What opens a connection is counted, too: reduce something before.
    """
    if not NETWORK_CARDS.is_file():
        return None
    tensor = torch.zeros(n_bytes // 4)
    dist.barrier()
    before = _counted()
    algorithm_of(algorithm)(tensor)
    dist.barrier()
    passed = torch.tensor([now - then for now, then in zip(_counted(), before, strict=True)])
    by_rank = [torch.zeros_like(passed) for _ in range(dist.get_world_size())]
    dist.all_gather(by_rank, passed)
    return [(int(sent), int(received)) for sent, received in by_rank]


def _counted() -> tuple[int, int]:
    """(sent, received) of all cards of this process's network so far, without the loopback."""
    sent = received = 0
    for line in NETWORK_CARDS.read_text().splitlines()[2:]:
        name, numbers = line.split(":")
        if name.strip() != "lo":
            columns = numbers.split()
            received, sent = received + int(columns[0]), sent + int(columns[8])
    return sent, received


def slowest(seconds: list[float]) -> list[float]:
    """The largest of all ranks' values, one by one; the same list on every rank."""
    values = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(values, dist.ReduceOp.MAX)
    return values.tolist()


def _ring_for(tier: str, ranks_by_instance: list[list[int]], rank: int) -> list[int]:
    """The ranks that send to each other, the given one among them."""
    if tier not in TIERS:
        raise ValueError(f"{tier!r} is not a tier; there are {' and '.join(TIERS)}.")
    intra_node = instance_of(rank, ranks_by_instance)
    if tier == "intra_node":
        return intra_node
    return [ranks[intra_node.index(rank)] for ranks in ranks_by_instance]
