"""`import smdistributed.dataparallel.torch.torch_smddp` where SMDDP does not exist.

The real module adds the backend "smddp" to torch.distributed. So does this one, and the
script that uses it need not change. The gradients are averaged exactly; the speed is not
SMDDP's, and nothing measured here may be called SMDDP's.

What it shares with SMDDP is that it knows which ranks share an instance. A tensor is added up
inside each instance first, each rank collecting one part of it; then part by part across the
instances; then every rank gets all parts. So an instance's bytes cross the network once, and
not once for each of its ranks, and all its ranks send.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future  # type: ignore[attr-defined]

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
# Their stubs lack the constructor that a backend calls, and the collectives.
ProcessGroup: Any = dist.ProcessGroup
ProcessGroupGloo: Any = dist.ProcessGroupGloo


class HierarchicalGroup(ProcessGroup):
    """A process group over gloo whose all-reduce has two tiers.

    store, rank, size, timeout: what torch.distributed gives every backend. Ranks must be
    placed instance by instance, with the same number on each, as mpirun and torchrun place them.

    Raises ValueError if they cannot be, or for a group of some of the ranks: SMDDP has none.
    """

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        everybody = int(os.environ.get("WORLD_SIZE", size))
        if size != everybody:
            raise ValueError(f"smddp has no groups of {size} of {everybody} ranks")
        per_instance = int(os.environ.get("LOCAL_WORLD_SIZE", size))
        if size % per_instance:
            raise ValueError(f"{size} ranks cannot be {per_instance} on every instance")
        instance, self.local_rank = divmod(rank, per_instance)

        def gloo(name: str, rank: int, size: int) -> Any:
            return ProcessGroupGloo(dist.PrefixStore(name, store), rank, size, timeout)

        self.flat = gloo("flat", rank, size)
        self.intra_node = gloo(f"intra-node-{instance}", self.local_rank, per_instance)
        self.inter_node = gloo(f"inter-node-{self.local_rank}", instance, size // per_instance)
        # One thread: the order of calls, the same on all ranks, is the order of operations.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="smddp")

    def getBackendName(self) -> str:
        return "smddp"

    def allreduce(self, tensors: list[torch.Tensor], opts: object = None) -> dist.Work:
        """Begin the all-reduce; backward() goes on meanwhile."""
        operation = getattr(opts, "reduceOp", dist.ReduceOp.SUM)

        def reduce_all() -> None:
            for tensor in tensors:
                self._reduce(tensor, operation)

        return self._begin(reduce_all, tensors)

    def broadcast(self, tensors: list[torch.Tensor], opts: object = None) -> dist.Work:
        options = opts or dist.BroadcastOptions()
        return self._begin(lambda: self.flat.broadcast(tensors, options).wait(), tensors)

    def allgather(self, outputs: list, inputs: list, opts: object = None) -> dist.Work:
        return self._begin(lambda: self.flat.allgather(outputs, inputs).wait(), outputs)

    def barrier(self, opts: object = None) -> dist.Work:
        return self._begin(lambda: self.flat.barrier().wait(), [])

    def _begin(self, operation: Callable[[], object], value: list) -> dist.Work:
        """Run `operation` after those begun before; a handle whose future becomes `value`."""
        future: torch.futures.Future = torch.futures.Future()

        def work() -> None:
            try:
                operation()
            except Exception as error:  # whatever it is: who waits must not wait for ever
                future.set_exception(error)
            else:
                future.set_result(value)

        self._thread.submit(work)
        return _create_work_from_future(future)

    def _reduce(self, tensor: torch.Tensor, operation: Any) -> None:
        """The hierarchical all-reduce of one tensor, in place."""
        mean = operation == dist.ReduceOp.AVG
        operation = dist.ReduceOp.SUM if mean else operation
        values = tensor.contiguous().view(-1)
        parts = list(values.tensor_split(self.intra_node.size()))
        self._reduce_scatter(parts, operation)
        shard = parts[self.local_rank]
        if shard.numel():
            options = dist.AllreduceOptions()
            options.reduceOp = operation
            self.inter_node.allreduce([shard], options).wait()
            if mean:
                shard.div_(self.size())
        self._all_gather(parts)
        if not tensor.is_contiguous():
            tensor.copy_(values.view(tensor.shape))

    def _reduce_scatter(self, parts: list[torch.Tensor], operation: Any) -> None:
        """Part l of local_rank l becomes the instance's; a reduce for each part, all at once."""
        works = []
        for root, part in enumerate(parts):
            options = dist.ReduceOptions()
            options.reduceOp, options.rootRank = operation, root
            works += [self.intra_node.reduce([part], options)] if part.numel() else []
        for work in works:
            work.wait()

    def _all_gather(self, parts: list[torch.Tensor]) -> None:
        """Copy part l of local_rank l to every rank of the instance."""
        works = []
        for root, part in enumerate(parts):
            options = dist.BroadcastOptions()
            options.rootRank = root
            works += [self.intra_node.broadcast([part], options)] if part.numel() else []
        for work in works:
            work.wait()


dist.Backend.register_backend("smddp", HierarchicalGroup, devices=["cpu"])
