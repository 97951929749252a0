"""One of each collective operation, on small numbers."""

import torch
import torch.distributed as dist


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
