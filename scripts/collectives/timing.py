"""Measurements of links and of all-reduces. Every function is called on all ranks.

The times come in blocks of several calls without a pause, because a single call is shorter than
the moment by which the ranks begin apart. A first call, not counted, opens the connections.
"""

import importlib
import time
from collections.abc import Callable
from dataclasses import asdict

import torch
import torch.distributed as dist

from collectives import wire


def one_way_seconds(n_bytes: int, calls: int, blocks: int) -> list[float]:
    """Seconds that a message takes from rank 0 to rank 1, by block: half of there and back.

    The other ranks do nothing meanwhile, and return zeros.
    """
    rank, message = dist.get_rank(), torch.zeros(n_bytes, dtype=torch.uint8)

    def there_and_back() -> None:
        if rank == 0:
            wire.send(message, 1)
            wire.receive(message, 1)
        elif rank == 1:
            wire.receive(message, 0)
            wire.send(message, 0)

    seconds = _seconds_per_call(there_and_back, calls, blocks)
    return [one / 2 if rank < 2 else 0.0 for one in seconds]


def all_pass_on_seconds(n_bytes: int, calls: int, blocks: int) -> list[float]:
    """Seconds until every rank has passed a message to the next one, all at once, by block."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    outgoing, incoming = torch.zeros(2, n_bytes, dtype=torch.uint8)

    def pass_on() -> None:
        wire.exchange(outgoing, (rank + 1) % world_size, incoming, (rank - 1) % world_size)

    return _seconds_per_call(pass_on, calls, blocks)


def all_reduce_seconds(algorithm: str, n_bytes: int, calls: int, blocks: int) -> list[float]:
    """Seconds of one all-reduce of n_bytes of float32, by block."""
    all_reduce, tensor = algorithm_of(algorithm), torch.zeros(n_bytes // 4)
    return _seconds_per_call(lambda: all_reduce(tensor), calls, blocks)


def count_traffic(algorithm: str, n_bytes: int, world_size: int) -> dict[str, int] | None:
    """What this rank passes in one all-reduce of n_bytes of float32 among the first ranks.

    Returns the fields of wire.Traffic; None on a rank that does not take part. algorithm: a
    file of this folder, because what torch's own sends is not counted.
    """
    group = dist.new_group(range(world_size))  # all ranks must call this, members or not
    if dist.get_rank() >= world_size:
        return None
    wire.start_counting()
    algorithm_of(algorithm)(torch.zeros(n_bytes // 4), group=group)
    return asdict(wire.traffic)


def algorithm_of(name: str) -> Callable:
    """The all_reduce of the file `name` in this folder, or torch's own for "gloo"."""
    if name == "gloo":
        return dist.all_reduce
    return importlib.import_module(f"collectives.{name}").all_reduce


def _seconds_per_call(function: Callable[[], None], calls: int, blocks: int) -> list[float]:
    function()
    found = []
    for _ in range(blocks):
        dist.barrier()
        began = time.perf_counter()
        for _ in range(calls):
            function()
        found.append((time.perf_counter() - began) / calls)
    return found
