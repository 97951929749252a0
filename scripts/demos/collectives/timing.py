"""Measure links and all-reduces: seconds, bytes, errors. Every function is called on all ranks.

Times come in blocks of several calls without a pause, because a single call is shorter than the
moment by which the ranks begin apart. What is compared is measured alternately, block by
block: a machine that is busy for a while is then busy for all of them.
"""

import importlib
import random
import time
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import torch
import torch.distributed as dist

from collectives import wire
from common.report import emit

ALGORITHMS = ("gloo", "naive", "tree", "ring", "interleaved_ring", "hierarchical", "mini_herring")
AGAIN = " again"  # after a name: the same, measured a second time in each round

Key = TypeVar("Key")


def in_turns(
    functions: Mapping[Key, Callable[[], object]],
    calls: int,
    blocks: int,
    warm_up: int = 1,
    uncounted: int = 0,
    apart: Collection[Key] = (),
) -> dict[Key, list[float]]:
    """Seconds of one call of each function, by block: A B C, B C A, and so on.

    Those of the slowest rank, the same on all. calls: in a block, which all ranks begin together.
    Each round has an order of its own: random, another in each job, and the same on all ranks.
    warm_up: calls of each before, not counted. uncounted: calls at the begin of each block, for
    what is faster after a pause: a limited link has saved up for a burst while it was idle. apart:
    functions in which no rank waits for another, so that the mean of the ranks is taken in place of
    the slowest.
    """
    for _ in range(warm_up):
        for function in functions.values():
            function()
    seconds: dict[Key, list[float]] = {key: [] for key in functions}
    seed = over_ranks([random.SystemRandom().random()], dist.ReduceOp.MAX)  # of this job
    shuffle = random.Random(seed[0]).shuffle
    for _ in range(blocks):
        order = list(functions.items())
        shuffle(order)
        for key, function in order:
            for _ in range(uncounted):
                function()
            dist.barrier()
            began = time.perf_counter()
            for _ in range(calls):
                function()
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            seconds[key].append((time.perf_counter() - began) / calls)
    ranks = dist.get_world_size()
    return {
        key: over_ranks(values, dist.ReduceOp.SUM, ranks) if key in apart else slowest(values)
        for key, values in seconds.items()
    }


def slowest(seconds: list[float]) -> list[float]:
    """The largest of all ranks' values, one by one; the same list on every rank."""
    return over_ranks(seconds, dist.ReduceOp.MAX)


def over_ranks(
    seconds: list[float], operation: dist.ReduceOp.RedOpType, divisor: int = 1
) -> list[float]:
    """All ranks' values, one by one, combined and divided; the same list on every rank."""
    values = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(values, operation)
    return (values / divisor).tolist()


def say(**record) -> None:
    """Print a line on rank 0 alone; seconds to the microsecond."""
    if "seconds" in record:
        record["seconds"] = [round(value, 6) for value in record["seconds"]]
    if dist.get_rank() == 0:
        emit(**record)


def count_traffic(algorithm: str, n_bytes: int, world_size: int) -> dict[str, int] | None:
    """What this rank passes in one all-reduce of n_bytes of float32 among the first ranks.

    Returns a copy of wire.traffic; None on a rank that does not take part. algorithm: a
    file of this folder, because what torch's own sends is not counted.
    """
    group = dist.new_group(range(world_size))  # all ranks must call this, members or not
    if dist.get_rank() >= world_size:
        return None
    wire.start_counting()
    algorithm_of(algorithm)(torch.zeros(n_bytes // 4), group=group)
    return dict(wire.traffic)


def different_elements(algorithm: str, length: int) -> int:
    """How many of `length` random integers end otherwise than with torch's own all-reduce."""
    torch.manual_seed(dist.get_rank())
    ours = torch.randint(1000, (length,))
    theirs = ours.clone()
    algorithm_of(algorithm)(ours)
    dist.all_reduce(theirs)
    return int((ours != theirs).sum())


def algorithm_of(name: str) -> Callable:
    """The all_reduce of the file `name` in this folder, or torch's own for "gloo"."""
    name = name.removesuffix(AGAIN)
    if name == "gloo":
        return dist.all_reduce
    return importlib.import_module(f"collectives.{name}").all_reduce
