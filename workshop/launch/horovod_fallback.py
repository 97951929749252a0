"""What the Horovod lessons run where Horovod is not installed."""

from __future__ import annotations

from dataclasses import dataclass

from local_sagemaker import daemon
from workshop.horovod import horovod_status

# A rank that waits gives its core to others. By default it spins, which is right only where
# every rank has a core of its own.
YIELD = "-x OMPI_MCA_mpi_yield_when_idle=1"


@dataclass(frozen=True)
class Choice:
    """script: in scripts/. mpi_options: for mpirun. explanation: for people."""

    script: str
    mpi_options: str
    explanation: str


def horovod_or_standin(session) -> Choice:
    """The Horovod script, or a PyTorch one that mpirun starts alike if Horovod is missing here.

    On AWS the container image has Horovod, whatever this machine has.
    """
    status = horovod_status()
    if session.target == "aws" or status.available:
        here = "in the container image" if session.target == "aws" else str(status)
        return Choice("train_tf_horovod.py", YIELD, f"The job uses Horovod: {here}.")
    found = daemon.running(daemon.state_directory())
    # PyTorch's ranks meet at an address; plain processes meet on loopback, its default.
    own_hosts = found is not None and found.isolation == "namespaces"
    return Choice(
        "train_torch_ddp.py",
        "-x MASTER_ADDR=algo-1" if own_hosts else "",
        f"Horovod is missing here. {status}.\n"
        "This run uses the stand-in scripts/train_torch_ddp.py: PyTorch averages the gradients.",
    )
