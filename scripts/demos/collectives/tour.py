"""What a tour of torch.distributed looks at: every collective operation, on small numbers."""

import torch
import torch.distributed as dist

from collectives import ring


def one_of_each() -> dict[str, list[int]]:
    """What this rank holds before and after each operation; every rank must call it.

    Rank r starts with 10 (r + 1), 10 (r + 1) + 1, ... : as many numbers as there are ranks.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    mine = 10 * (rank + 1) + torch.arange(world_size)
    mine_split, one = list(mine.split(1)), mine[:1].clone()

    def empty() -> list[torch.Tensor]:
        return list(torch.zeros(world_size, 1, dtype=mine.dtype))

    held = {"before": mine}
    held["broadcast from 0"] = copied = mine.clone()
    dist.broadcast(copied, src=0)
    held["scatter from 0"] = part = torch.zeros_like(one)
    dist.scatter(part, mine_split if rank == 0 else None, src=0)
    gathered = empty() if rank == 0 else None
    dist.gather(one, gathered, dst=0)
    held["gather (first number) at 0"] = torch.cat(gathered) if gathered else one[:0]
    held["reduce to 0"] = reduced = mine.clone()
    dist.reduce(reduced, dst=0)
    held["all-reduce"] = summed = mine.clone()
    dist.all_reduce(summed)
    held["reduce-scatter"] = part = torch.zeros_like(one)
    dist.reduce_scatter(part, mine_split)
    everyones = empty()
    dist.all_gather(everyones, one)
    held["all-gather (first number)"] = torch.cat(everyones)
    return {name: tensor.tolist() for name, tensor in held.items()}


def watched_ring() -> torch.Tensor:
    """What this rank holds before a ring all-reduce and after each of its steps.

    Returns (steps + 1, world_size): a number for each chunk. Rank r begins with 10 to the power r.
    """
    tensor = torch.full((dist.get_world_size(),), 10 ** dist.get_rank())
    held = [tensor.clone()]

    def look() -> None:
        held.append(tensor.clone())
        dist.barrier()  # or the next chunk might be here before all have looked

    ring.all_reduce(tensor, on_step=look)
    return torch.stack(held)


def backends() -> dict[str, bool]:
    """Which ways to communicate this torch was built with."""
    return {
        "gloo": dist.is_gloo_available(),
        "nccl": dist.is_nccl_available(),
        "mpi": dist.is_mpi_available(),
    }
