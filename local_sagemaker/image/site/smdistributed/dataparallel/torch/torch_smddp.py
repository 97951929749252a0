"""`import smdistributed.dataparallel.torch.torch_smddp` where SMDDP does not exist.

The real module adds the backend "smddp" to torch.distributed. So does this one, and the
script that uses it need not change. The gradients are averaged exactly; the speed is not
SMDDP's, and nothing measured here may be called SMDDP's.

What it shares with SMDDP is the shape of the algorithm, two tiers: first inside each host,
then once across the hosts, so that a host's bytes cross the network once and not once for
each of its ranks.
"""

from __future__ import annotations

import os
from datetime import timedelta

import torch
import torch.distributed as dist

# mpirun starts the ranks (as smddprun does on AWS); torch.distributed reads these names.
for _name, _source in (
    ("RANK", "OMPI_COMM_WORLD_RANK"),
    ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"),
    ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
):
    if _source in os.environ:
        os.environ.setdefault(_name, os.environ[_source])
os.environ.setdefault("MASTER_ADDR", "localhost")
os.environ.setdefault("MASTER_PORT", "7777")


class _Done(dist._Work):
    """The handle of an operation that has already finished. value: what it produced."""

    def __init__(self, value: list) -> None:
        super().__init__()
        self.future = torch.futures.Future()
        self.future.set_result(value)

    def wait(self, timeout: timedelta | None = None) -> bool:
        return True

    def get_future(self) -> torch.futures.Future:
        return self.future


class TwoTierGroup(dist.ProcessGroup):
    """A process group over gloo whose all-reduce has two tiers.

    store, rank, size, timeout: what torch.distributed gives every backend. Ranks must be
    placed host by host, with the same number on each, as mpirun and torchrun place them.
    """

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        per_host = int(os.environ.get("LOCAL_WORLD_SIZE", size))
        if size % per_host:
            raise ValueError(f"{size} ranks cannot be {per_host} on every host")
        host, local_rank = divmod(rank, per_host)

        def gloo(name: str, rank: int, size: int) -> dist.ProcessGroupGloo:
            return dist.ProcessGroupGloo(dist.PrefixStore(name, store), rank, size, timeout)

        self.flat = gloo("flat", rank, size)
        self.inside = gloo(f"inside-{host}", local_rank, per_host)
        self.is_leader = local_rank == 0
        self.across = gloo("across", host, size // per_host) if self.is_leader else None

    def getBackendName(self) -> str:
        return "smddp"

    def allreduce(self, tensors: list[torch.Tensor], opts: object = None) -> _Done:
        """Reduce to each host's leader, all-reduce among leaders, broadcast inside."""
        operation = getattr(opts, "reduceOp", dist.ReduceOp.SUM)
        mean = operation == dist.ReduceOp.AVG
        operation = dist.ReduceOp.SUM if mean else operation
        reduce, all_reduce = dist.ReduceOptions(), dist.AllreduceOptions()
        reduce.reduceOp = all_reduce.reduceOp = operation
        reduce.rootRank = 0
        self.inside.reduce(tensors, reduce).wait()
        if self.is_leader:
            self.across.allreduce(tensors, all_reduce).wait()
        self.inside.broadcast(tensors, dist.BroadcastOptions()).wait()
        if mean:
            for tensor in tensors:
                tensor.div_(self.size())
        return _Done(tensors)

    def broadcast(self, tensors: list[torch.Tensor], opts: object = None) -> _Done:
        self.flat.broadcast(tensors, opts or dist.BroadcastOptions()).wait()
        return _Done(tensors)

    def allgather(self, outputs: list, inputs: list, opts: object = None) -> _Done:
        self.flat.allgather(outputs, inputs).wait()
        return _Done(outputs)

    def barrier(self, opts: object = None) -> _Done:
        self.flat.barrier().wait()
        return _Done([])


dist.Backend.register_backend("smddp", TwoTierGroup, devices=["cpu"])
