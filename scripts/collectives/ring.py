"""All-reduce around a ring: each rank sends to the next and receives from the one before.

The tensor is cut into world_size chunks. Reduce-scatter: in world_size - 1 steps the sums of the
chunks grow while they travel; then rank r holds the whole sum of chunk r. All-gather: in as many
steps each finished chunk travels once around. Every link works in every step.
"""

from collections.abc import Callable

import torch
import torch.distributed as dist

from collectives.wire import exchange, flat


def all_reduce(tensor: torch.Tensor, group=None, on_step: Callable = lambda: None) -> None:
    """Replace `tensor` on every rank by the sum over all ranks, element by element.

    tensor: contiguous, on the CPU, of the same shape and type on every rank. Of any length:
    chunks may differ by one element, or be empty. on_step: called after every step.
    """
    reduce_scatter(tensor, group, on_step)
    all_gather(tensor, group, on_step)


def reduce_scatter(tensor: torch.Tensor, group=None, on_step: Callable = lambda: None) -> None:
    """Make chunk r of rank r's tensor the sum over all ranks. Its other chunks: sums of some."""
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    chunks = flat(tensor).tensor_split(world_size)
    arriving = torch.empty_like(chunks[0])  # the first chunk is as long as any
    for step in range(world_size - 1):
        outgoing = chunks[(rank - step - 1) % world_size]
        growing = chunks[(rank - step - 2) % world_size]
        incoming = arriving[: len(growing)]
        exchange(outgoing, (rank + 1) % world_size, incoming, (rank - 1) % world_size, group)
        growing += incoming
        on_step()


def all_gather(tensor: torch.Tensor, group=None, on_step: Callable = lambda: None) -> None:
    """Copy chunk r of rank r's tensor to every rank, for all r."""
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    chunks = flat(tensor).tensor_split(world_size)
    for step in range(world_size - 1):
        outgoing = chunks[(rank - step) % world_size]
        incoming = chunks[(rank - step - 1) % world_size]
        exchange(outgoing, (rank + 1) % world_size, incoming, (rank - 1) % world_size, group)
        on_step()
