"""All-reduce around a ring: each rank sends to the next and receives from the one before.

The tensor is cut into world_size chunks. Reduce-scatter: in world_size - 1 steps the sums of the
chunks grow while they travel; then rank r holds the whole sum of chunk r. All-gather: in as many
steps each finished chunk travels once around. Every link works in every step.

All receives begin before the first send. So no rank waits for one that waits for it, and a sender
finds the next rank ready.
"""

from collections.abc import Callable

import torch

from collectives.wire import Order, begin_to_receive, flat, place_in, send


def all_reduce(
    tensor: torch.Tensor, group=None, on_step: Callable = lambda: None, order: Order = None
) -> None:
    """Replace `tensor` on every rank of the ring by the sum over them, element by element.

    tensor: contiguous, on the CPU, of the same shape and type on every rank. Of any length:
    chunks may differ by one element, or be empty. on_step: called after every step; the next
    step's chunk may be arriving then, unless on_step waits for all ranks. order: the
    ranks of the group that make the ring, first to last; None: all of them, by number. Several
    rings may work at the same time if they share no rank.
    """
    reduce_scatter(tensor, group, on_step, order)
    all_gather(tensor, group, on_step, order)


def reduce_scatter(
    tensor: torch.Tensor, group=None, on_step: Callable = lambda: None, order: Order = None
) -> None:
    """Make chunk r of rank r's tensor the sum over all ranks. Its other chunks: sums of some.

    With `order`, the ranks in the ring's order, r is a rank's place in it.
    """
    rank, ranks = place_in(order, group)
    world_size = len(ranks)
    before, after = ranks[rank - 1], ranks[(rank + 1) % world_size]
    chunks = flat(tensor).tensor_split(world_size)
    coming = [(rank - step - 2) % world_size for step in range(world_size - 1)]
    arriving = [torch.empty_like(chunks[chunk]) for chunk in coming]
    received = [begin_to_receive(buffer, before, group) for buffer in arriving]
    for step, chunk in enumerate(coming):
        send(chunks[(chunk + 1) % world_size], after, group)
        received[step].wait()
        chunks[chunk].add_(arriving[step])
        on_step()


def all_gather(
    tensor: torch.Tensor, group=None, on_step: Callable = lambda: None, order: Order = None
) -> None:
    """Copy chunk r of rank r's tensor to every rank, for all r. `order` is as above."""
    rank, ranks = place_in(order, group)
    world_size = len(ranks)
    before, after = ranks[rank - 1], ranks[(rank + 1) % world_size]
    chunks = flat(tensor).tensor_split(world_size)
    coming = [(rank - step - 1) % world_size for step in range(world_size - 1)]
    received = [begin_to_receive(chunks[chunk], before, group) for chunk in coming]
    for step, chunk in enumerate(coming):
        send(chunks[(chunk + 1) % world_size], after, group)
        received[step].wait()
        on_step()
