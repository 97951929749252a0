"""`import smdistributed.dataparallel.torch.torch_smddp` where SMDDP does not exist.

The real module adds the backend "smddp" to torch.distributed. So does this one, and the
script that uses it need not change: here the name stands for gloo. The gradients are averaged as
exactly; the speed is gloo's, and nothing measured here may be called SMDDP's.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

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
# Its stub lacks the constructor that a backend calls.
ProcessGroupGloo: Any = dist.ProcessGroupGloo


def gloo(store: dist.Store, rank: int, size: int, timeout: timedelta) -> Any:
    """A process group of all ranks. Raises ValueError for one of some: SMDDP has none."""
    everybody = int(os.environ.get("WORLD_SIZE", size))
    if size != everybody:
        raise ValueError(f"smddp has no groups of {size} of {everybody} ranks")
    return ProcessGroupGloo(store, rank, size, timeout)


dist.Backend.register_backend("smddp", gloo, devices=["cpu"])
