"""Which rank lives on which instance: what an algorithm must know to spare the network.

torchrun and mpirun place ranks instance by instance, as many on each: with 4 ranks on each
instance, ranks 0 to 3 are on the first, 4 to 7 on the second.
"""

import os

import torch.distributed as dist

# How many ranks an instance has: torchrun's variable, and Open MPI's.
RANKS_PER_INSTANCE = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")


def instances(group=None) -> list[list[int]]:
    """The group's ranks, a list for each instance; in it, they are in the order of local_rank.

    Without either launcher's variable all ranks are on one instance.
    """
    world_size = dist.get_world_size(group)
    per_instance = ranks_per_instance(world_size if group is None else dist.get_world_size())
    ranks_by_instance: dict[int, list[int]] = {}
    for rank in range(world_size):
        everywhere = rank if group is None else dist.get_global_rank(group, rank)
        ranks_by_instance.setdefault(everywhere // per_instance, []).append(rank)
    return [ranks_by_instance[instance] for instance in sorted(ranks_by_instance)]


def equal_instances(group=None) -> list[list[int]]:
    """As `instances`. Raises ValueError unless each has equally many ranks of the group."""
    ranks_by_instance = instances(group)
    counts = [len(ranks) for ranks in ranks_by_instance]
    if len(set(counts)) > 1:
        raise ValueError(
            f"The instances have {', '.join(map(str, counts))} ranks, and this algorithm needs "
            "equally many on each: start the job so, or use ring."
        )
    return ranks_by_instance


def instance_of(rank: int, ranks_by_instance: list[list[int]]) -> list[int]:
    """The ranks of the instance that `rank` is on. ranks_by_instance: from `instances`."""
    return next(ranks for ranks in ranks_by_instance if rank in ranks)


def ranks_per_instance(default: int) -> int:
    """What the launcher set, or `default`, which is right on one instance."""
    of_launchers = (os.environ[name] for name in RANKS_PER_INSTANCE if name in os.environ)
    return int(next(of_launchers, default))
