"""All-reduce along a binomial tree: sums go up to rank 0 in log2(world_size) steps, and down.

Four ranks, up: 1 → 0 and 3 → 2 at the same time, then 2 → 0. Down: the same arrows turned round.
"""

import torch

from collectives.wire import Order, flat, place_in, receive, send


def all_reduce(tensor: torch.Tensor, group=None) -> None:
    """Replace `tensor` on every rank by the sum over all ranks, element by element.

    tensor: contiguous, on the CPU, of the same shape and type on every rank.
    """
    reduce(tensor, group)
    broadcast(tensor, group)


def reduce(tensor: torch.Tensor, group=None, order: Order = None) -> None:
    """Make rank 0's tensor the sum over all ranks. The others' hold sums of some ranks.

    order: the ranks of the group that make the tree, the root first; None: all, by number.
    """
    rank, ranks = place_in(order, group)
    world_size = len(ranks)
    values = flat(tensor)
    arriving = torch.empty_like(values)
    distance = 1
    while distance < world_size:
        if rank % (2 * distance) == distance:
            send(values, ranks[rank - distance], group)
            return  # this rank's part is on its way up
        if rank + distance < world_size:
            receive(arriving, ranks[rank + distance], group)
            values += arriving
        distance *= 2


def broadcast(tensor: torch.Tensor, group=None, order: Order = None) -> None:
    """Copy rank 0's tensor to every rank. `order` is as above."""
    rank, ranks = place_in(order, group)
    world_size = len(ranks)
    values = flat(tensor)
    distance = 1
    while 2 * distance < world_size:
        distance *= 2
    while distance:
        if rank % (2 * distance) == distance:
            receive(values, ranks[rank - distance], group)
        elif rank % (2 * distance) == 0 and rank + distance < world_size:
            send(values, ranks[rank + distance], group)
        distance //= 2
