"""All-reduce the obvious way: everything to rank 0, the sum back to all.

Rank 0 passes 2 · (world_size - 1) whole tensors, one after the other. The others wait.
"""

import torch
import torch.distributed as dist

from collectives.wire import flat, receive, send


def all_reduce(tensor: torch.Tensor, group=None) -> None:
    """Replace `tensor` on every rank by the sum over all ranks, element by element.

    tensor: contiguous, on the CPU, of the same shape and type on every rank.
    """
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    values = flat(tensor)
    if rank == 0:
        arriving = torch.empty_like(values)
        for other in range(1, world_size):
            receive(arriving, other, group)
            values += arriving
        for other in range(1, world_size):
            send(values, other, group)
    else:
        send(values, 0, group)
        receive(values, 0, group)
