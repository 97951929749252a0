"""Measure the two tiers of a job's network, intra-node and inter-node.

Every function is called on all ranks. Which rank is on which instance: see placement.py.

A message is timed as what it is in a ring: a step of ring.all_gather, in a closed loop. A rank
begins to receive, sends, waits for what comes, and only then sends again.
"""

from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist

from collectives import ring
from collectives.placement import equal_instances, instance_of
from collectives.timing import in_turns

TIERS = ("intra_node", "inter_node")
NETWORK_CARDS = Path("/proc/net/dev")  # Linux: bytes and packets of each card, see proc(5)

MIN_BLOCK_BYTES = 2**20
MAX_CALLS = 20  # in a block, to reach that

Key = tuple[str, int, int]  # tier, pairs, bytes of a message


def message_seconds(sizes: list[int], calls: int, blocks: int) -> dict[Key, list[float]]:
    """Seconds of one message, by block: those of the slowest rank.

    Args:
        sizes: bytes of a message.
        calls, blocks: how many all-gathers of such messages a block has at least, and how many
            blocks there are. Short messages get more calls.

    Returns a list for each (tier, pairs, bytes), all measured in rounds. tier: "intra_node": among
    the ranks of each instance. "inter_node": among those that have the same local_rank, one on
    each instance. A tier without messages is left out. pairs: how many messages of the tier travel
    at once on each instance. 1: those of one pair of ranks, which pass a message to each other
    (inter-node: of the ranks with local_rank 0), while all others are silent. Or the number of
    ranks per instance: every rank passes a message on at the same time, as in a ring.

    A first call, which opens the connections, is not counted. Nor is the first of each block: a
    limited link saves up for a burst while it is idle, and a ring's link is never idle.
    """
    functions, per_call = {}, {}
    for key in [(tier, pairs, size) for tier in TIERS for pairs in _pairs(tier) for size in sizes]:
        function, steps = _passes(*key)
        repeats = calls_for(key[-1], calls)
        functions[key] = _repeated(function, repeats)
        per_call[key] = repeats * steps
    seconds = in_turns(functions, 1, blocks, uncounted=1)
    return {key: [value / per_call[key] for value in values] for key, values in seconds.items()}


def calls_for(n_bytes: int, calls: int) -> int:
    """How many calls a block has: a short one is over sooner than the ranks can begin together."""
    return max(calls, min(MAX_CALLS, MIN_BLOCK_BYTES // n_bytes))


def card_bytes(function: Callable[[], object]) -> list[tuple[int, int]]:
    """Call function on all ranks; return what the cards counted: (sent, received), by rank.

    With the packets' headers and acknowledgements. Empty where the system keeps no such counts
    (/proc/net/dev of Linux). What opens a connection is counted, too: call it once before. Ranks
    of one instance share a card, so each of them reports the same.
    """
    dist.barrier()
    before = _counted()
    function()
    dist.barrier()
    if not NETWORK_CARDS.is_file():
        return []
    passed = torch.tensor([now - then for now, then in zip(_counted(), before, strict=True)])
    by_rank = [torch.zeros_like(passed) for _ in range(dist.get_world_size())]
    dist.all_gather(by_rank, passed)
    return [(int(sent), int(received)) for sent, received in by_rank]


def _counted() -> tuple[int, int]:
    """(sent, received) of all cards of this process's network so far, without the loopback."""
    sent = received = 0
    lines = NETWORK_CARDS.read_text().splitlines() if NETWORK_CARDS.is_file() else []
    for line in lines[2:]:
        name, numbers = line.split(":")
        if name.strip() != "lo":
            columns = numbers.split()
            received, sent = received + int(columns[0]), sent + int(columns[8])
    return sent, received


def _pairs(tier: str) -> list[int]:
    """The numbers of pairs that can be measured; none where the tier has no message."""
    ranks_by_instance = equal_instances()
    if len(_ring_for(tier, ranks_by_instance, dist.get_rank())) == 1:
        return []
    return sorted({1, len(ranks_by_instance[0])})


def _passes(tier: str, pairs: int, n_bytes: int):
    """A function that passes messages on around this rank's ring; and its number of steps."""
    ranks_by_instance, rank = equal_instances(), dist.get_rank()
    order = _ring_for(tier, ranks_by_instance, rank)
    if tier == "intra_node" and pairs == 1:
        order = order[:2]
    # With one pair, only the first rank of each instance sends to another instance.
    silent = pairs == 1 and tier == "inter_node" and rank != instance_of(rank, ranks_by_instance)[0]
    if silent or rank not in order:
        return lambda: None, len(order) - 1
    chunks = torch.zeros(len(order) * n_bytes, dtype=torch.uint8)
    return lambda: ring.all_gather(chunks, order=order), len(order) - 1


def _repeated(function, times: int):
    def repeat() -> None:
        for _ in range(times):
            function()

    return repeat


def _ring_for(tier: str, ranks_by_instance: list[list[int]], rank: int) -> list[int]:
    """The ranks that send to each other, the given one among them."""
    intra_node = instance_of(rank, ranks_by_instance)
    if tier == "intra_node":
        return intra_node
    return [ranks[intra_node.index(rank)] for ranks in ranks_by_instance]
