"""Find out which of how many processes this is, under torchrun, mpirun or neither."""

import json
import os
import sys
from datetime import timedelta
from typing import NoReturn

import torch
import torch.distributed as dist

_LAUNCHERS = (  # rank, world_size, local_rank, ranks on this machine
    ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),  # torchrun
    (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),  # mpirun
)


def init_distributed(
    backend: str | None = None, timeout: timedelta | None = None
) -> tuple[int, int]:
    """Join the other ranks; return (local_rank, ranks on this machine).

    backend: None takes NCCL where every rank of this machine has a GPU to itself, else Gloo. Alone,
    without a launcher, it is rank 0 of 1. Under mpirun, which names no meeting point, the ranks
    of several instances meet at the first one's port 29500; if all ranks are here, at
    MASTER_ADDR:MASTER_PORT, by default 127.0.0.1:29500. timeout: of each collective; None:
    PyTorch's own.
    """
    rank, world_size, local_rank, ranks_here = 0, 1, 0, 1
    for names in _LAUNCHERS:
        if names[0] in os.environ:
            rank, world_size, local_rank, ranks_here = (int(os.environ[n]) for n in names)
            break
    hosts = json.loads(os.environ.get("SM_HOSTS", "[]")) if world_size > ranks_here else []
    if hosts and "RANK" not in os.environ:  # mpirun: each host may have inherited another address
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = hosts[0], "29500"
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500" if world_size > 1 else "0")
    own_gpu = torch.cuda.device_count() >= ranks_here
    if own_gpu:  # else object broadcasts and barriers of all ranks here take GPU 0
        torch.cuda.set_device(local_rank)
    backend = backend or ("nccl" if own_gpu else "gloo")
    store = _store_of_restart()
    dist.init_process_group(backend, rank=rank, world_size=world_size, store=store, timeout=timeout)
    return local_rank, ranks_here


def _store_of_restart() -> dist.Store | None:
    """Return where ranks that torchrun has restarted leave their addresses; else None.

    torchrun (2.13) keeps its store over a restart, and there the addresses of the ranks that have
    ended: who finds one of those waits for nobody. So each restart gets names of its own.
    """
    restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    if restarts == "0" or os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return dist.PrefixStore(f"restart_{restarts}", dist.TCPStore(address, port, is_master=False))


def all_reduce_mean(value: float) -> float:
    """Return the mean of every rank's `value`. A collective operation: every rank must call it."""
    on_gpu = torch.cuda.is_available() and dist.get_backend() != "gloo"
    device = "cuda" if on_gpu else "cpu"
    total = torch.tensor(value, dtype=torch.float64, device=device)
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def gather(value: object) -> list:
    """Return every rank's `value`, in the order of the ranks. Every rank must call it."""
    values: list = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def cleanup() -> NoReturn:
    """Leave the group together, then end the process: the last call of a script that succeeded.

    A rank that leaves while another still works (rank 0 saves the model) takes its end of the
    connections with it, so all wait for all. And the process ends here, not at the end of the
    script: a thread of gloo that lets go of its last tensor while Python is being taken down
    aborts the process, now and then, with "terminate called without an active exception"
    (pytorch/pytorch#190489, #179291).
    """
    dist.barrier()
    dist.destroy_process_group()
    if "mpi4py.MPI" in sys.modules:  # SageMaker starts scripts with `python -m mpi4py`
        sys.modules["mpi4py.MPI"].Finalize()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
