"""What a rank holds and sends: by looking at its tensors after each operation."""

import weakref
from collections import Counter
from collections.abc import Iterable
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

COLLECTIVES = {
    "c10d::allreduce_": "all_reduce",
    "c10d::_reduce_scatter_base_": "reduce_scatter",
    "c10d::_allgather_base_": "all_gather",
}


class TensorWatch(TorchDispatchMode):
    """Counts the bytes of all tensors that operations make, and of those that collectives take.

        with TensorWatch() as watch:
            model = make(); train(model)
        watch.held_bytes(); watch.peak; watch.sent["all_reduce"]

    Memory that tensors share counts once. What a tensor frees by itself, as fully_shard does with
    gathered weights, counts as freed. A GPU's allocator says the same: torch.cuda.memory_allocated.
    """

    def __init__(self) -> None:
        super().__init__()
        self.peak = 0
        self.sent: Counter[str] = Counter()  # whole tensors, as all ranks together have them
        self._storages: dict[int, weakref.ref] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Run the operation, then look."""
        if DTensor in types:  # it calls operations on its local tensors, which come here again
            return NotImplemented
        result = func(*args, **(kwargs or {}))
        if collective := COLLECTIVES.get(func._schema.name):
            sizes = [sum(t.nbytes for t in tensors(argument)) for argument in args]
            self.sent[collective] += max(sizes)
        for tensor in tensors(result):
            storage = tensor.untyped_storage()
            self._storages[storage._cdata] = weakref.ref(storage)
        self.peak = max(self.peak, self.held_bytes())
        return result

    def held_bytes(self) -> int:
        """Return the bytes of the tensors that are alive."""
        alive = {key: storage for key, ref in self._storages.items() if (storage := ref())}
        self._storages = {key: weakref.ref(storage) for key, storage in alive.items()}
        return sum(storage.nbytes() for storage in alive.values())


def tensors(values: Any) -> list[torch.Tensor]:
    """Return the tensors among values that may be nested."""
    return [value for value in tree_leaves(values) if isinstance(value, torch.Tensor)]


def storage_bytes(tensors: Iterable[Any]) -> int:
    """Return the bytes behind tensors, what several share counted once; of a shard, its own."""
    storages = {}
    for tensor in tensors:
        tensor = tensor.to_local() if isinstance(tensor, DTensor) else tensor
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())
