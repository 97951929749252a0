"""All-reduce around a ring, in two halves that parts 1 and 4 use."""

from collections.abc import Sequence

import torch
import torch.distributed as dist


def all_reduce(tensor: torch.Tensor, op: str) -> None:
    ranks = range(dist.get_world_size())
    values = tensor.view(-1)
    reduce_scatter(values, ranks)
    if op == "mean":
        chunk = values.tensor_split(len(ranks))[dist.get_rank()]
        chunk /= len(ranks)
    all_gather(values, ranks)


def reduce_scatter(values: torch.Tensor, ranks: Sequence[int]) -> None:
    """Make chunk r, of the rank with place r, the sum over the ranks."""
    place, chunks = ranks.index(dist.get_rank()), values.tensor_split(len(ranks))
    for step in range(len(ranks) - 1):
        outgoing = chunks[(place - step - 1) % len(ranks)]
        target = chunks[(place - step - 2) % len(ranks)]
        incoming = torch.empty_like(target)
        _exchange(outgoing, incoming, ranks, place)
        target += incoming


def all_gather(values: torch.Tensor, ranks: Sequence[int]) -> None:
    """Copy chunk r of the rank with place r to all."""
    place, chunks = ranks.index(dist.get_rank()), values.tensor_split(len(ranks))
    for step in range(len(ranks) - 1):
        outgoing = chunks[(place - step) % len(ranks)]
        _exchange(outgoing, chunks[(place - step - 1) % len(ranks)], ranks, place)


def _exchange(outgoing, incoming, ranks: Sequence[int], place: int) -> None:
    """Begin to receive, then send: no rank waits for one that waits for it."""
    arriving = dist.irecv(incoming, ranks[place - 1]) if incoming.numel() else None
    if outgoing.numel():
        dist.send(outgoing, ranks[(place + 1) % len(ranks)])
    if arriving:
        arriving.wait()
