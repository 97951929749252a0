"""What a tour of torch.distributed looks at: every collective operation, on small numbers."""

import torch
import torch.distributed as dist

from collectives import ring


def one_of_each() -> dict[str, list[int]]:
    """What this rank holds before and after each operation; every rank must call it.

    Rank r starts with 10 (r + 1), 10 (r + 1) + 1, ... : as many numbers as there are ranks.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    values = 10 * (rank + 1) + torch.arange(world_size)
    parts, first = list(values.split(1)), values[:1].clone()

    def empty() -> list[torch.Tensor]:
        return list(torch.zeros(world_size, 1, dtype=values.dtype))

    state = {"before": values}
    state["broadcast from 0"] = copied = values.clone()
    dist.broadcast(copied, src=0)
    state["scatter from 0"] = part = torch.zeros_like(first)
    dist.scatter(part, parts if rank == 0 else None, src=0)
    gathered = empty() if rank == 0 else None
    dist.gather(first, gathered, dst=0)
    state["gather (first number) at 0"] = torch.cat(gathered) if gathered else first[:0]
    state["reduce to 0"] = reduced = values.clone()
    dist.reduce(reduced, dst=0)
    state["all-reduce"] = summed = values.clone()
    dist.all_reduce(summed)
    state["reduce-scatter"] = part = torch.zeros_like(first)
    dist.reduce_scatter(part, parts)
    everyones = empty()
    dist.all_gather(everyones, first)
    state["all-gather (first number)"] = torch.cat(everyones)
    return {name: tensor.tolist() for name, tensor in state.items()}


def watched_ring() -> torch.Tensor:
    """What this rank holds before a ring all-reduce and after each of its steps.

    Returns (steps + 1, world_size): a number for each chunk. Rank r begins with 10 to the power r.
    """
    tensor = torch.full((dist.get_world_size(),), 10 ** dist.get_rank())
    states = [tensor.clone()]

    def look() -> None:
        states.append(tensor.clone())
        dist.barrier()  # or the next chunk might be here before all have looked

    ring.all_reduce(tensor, on_step=look)
    return torch.stack(states)


def backends() -> dict[str, bool]:
    """Which ways to communicate this torch was built with."""
    return {
        "gloo": dist.is_gloo_available(),
        "nccl": dist.is_nccl_available(),
        "mpi": dist.is_mpi_available(),
    }
