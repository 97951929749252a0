"""Run a learner's collective: with only send and receive at hand, or with two groups of ranks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

FORBIDDEN = [
    *("all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "gather"),
    *("broadcast", "scatter", "reduce", "reduce_scatter", "reduce_scatter_tensor"),
    *("all_to_all", "all_to_all_single", "all_gather_coalesced"),
    *("broadcast_object_list", "gather_object", "scatter_object_list"),
]


class CollectiveUsed(Exception):
    """The answer called what it was to build; the message says what to use instead."""


def vector_of(rank: int, length: int, kind: str) -> torch.Tensor:
    """Numbers that no other rank has. kind: a torch type's name, such as "int64"."""
    return (100 * (rank + 1) + torch.arange(length)).to(getattr(torch, kind))


def call(all_gather: Callable, length: int, kind: str) -> dict:
    """What this rank's all_gather(vector) returned: its values, shape and type."""
    with _replaced(_refuse, (dist, distributed_c10d)):  # the same functions under two names
        gathered = all_gather(vector_of(dist.get_rank(), length, kind))
    if not isinstance(gathered, torch.Tensor):
        return {"kind": type(gathered).__name__}
    shape = tuple(gathered.shape)
    return {"kind": str(gathered.dtype), "shape": shape, "values": gathered.tolist()}


@contextmanager
def _replaced(by: Callable[[Callable], Callable], modules: tuple = (dist,)) -> Iterator[None]:
    """Inside the `with`, each collective of these modules is what `by` makes of it."""
    originals = {name: getattr(dist, name) for name in FORBIDDEN}
    try:
        for module in modules:
            for name, function in originals.items():
                setattr(module, name, by(function))
        yield
    finally:
        for module in modules:
            for name, function in originals.items():
                setattr(module, name, function)


def _refuse(function: Callable) -> Callable:
    def refuse(*_, **__):
        raise CollectiveUsed(
            f"dist.{function.__name__} is what you build here: use dist.isend and dist.recv."
        )

    return refuse


def call_in_tiers(all_reduce: Callable, length: int, ranks_each: int) -> dict:
    """Run all_reduce(vector, intra_node, inter_node) as if `ranks_each` ranks were an instance.

    Returns what it returned, as `call` does, and `calls`: each collective that it used, as
    (name, "intra_node", "inter_node" or "all", numbers that it was given).
    """
    intra_node, inter_node = _tiers(ranks_each)
    calls: list[tuple[str, str, int]] = []
    names = {intra_node: "intra_node", inter_node: "inter_node"}
    with _replaced(lambda function: _watched(function, names, calls)):
        result = all_reduce(vector_of(dist.get_rank(), length, "float64"), intra_node, inter_node)
    if not isinstance(result, torch.Tensor):
        return {"kind": type(result).__name__, "calls": calls}
    return {"kind": str(result.dtype), "values": result.tolist(), "calls": calls}


def _tiers(ranks_each: int) -> tuple:
    """This rank's two groups. Every rank must make every group, in the same order."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    starts = range(0, world_size, ranks_each)
    instances = [dist.new_group(range(start, start + ranks_each)) for start in starts]
    peers = [dist.new_group(range(local, world_size, ranks_each)) for local in range(ranks_each)]
    return instances[rank // ranks_each], peers[rank % ranks_each]


def _watched(function: Callable, names: dict, calls: list) -> Callable:
    def watched(*args, **options):
        groups = (value for value in args if isinstance(value, dist.ProcessGroup))
        group = options.get("group") or next(groups, None)
        numbers = max(map(_numbers, args), default=0)
        calls.append((function.__name__, names.get(group, "all"), numbers))
        return function(*args, **options)

    return watched


def _numbers(value) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel()
    if isinstance(value, list | tuple):
        return sum(map(_numbers, value))
    return 0
