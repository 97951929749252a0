"""What the Horovod lessons run: the Horovod script, or a PyTorch one where Horovod is missing."""

from __future__ import annotations

from dataclasses import dataclass, field

from local_sagemaker import daemon
from workshop.launch.horovod import horovod_status
from workshop.launch.loopback import INTERFACE, free_port

# A rank that waits gives its core to others. By default it spins, which is right only where
# every rank has a core of its own.
YIELD = "-x OMPI_MCA_mpi_yield_when_idle=1"


@dataclass(frozen=True)
class ScriptChoice:
    """script: in scripts/. library: "tensorflow" or "torch". explanation: for people.

    mpi_options: for a job's mpirun. environment: variables that ranks on this machine need.
    """

    script: str
    library: str
    explanation: str
    mpi_options: str = ""
    environment: dict[str, str] = field(default_factory=dict)


def script_for_job(session) -> ScriptChoice:
    """The Horovod script, or a PyTorch one that mpirun starts alike if Horovod is missing here.

    On AWS the container image has Horovod, whatever this machine has.
    """
    status = horovod_status()
    if session.target == "aws" or status.available:
        here = "in the container image" if session.target == "aws" else str(status)
        script = "train_tf_horovod.py"
        return ScriptChoice(script, "tensorflow", f"The job uses Horovod: {here}.", YIELD)
    found = daemon.running(daemon.state_directory())
    # PyTorch's ranks meet at an address; plain processes meet on loopback, its default.
    own_hosts = found is not None and found.isolation == "namespaces"
    return ScriptChoice(
        "train_torch_ddp.py",
        "torch",
        f"Horovod is missing here. {status}.\n"
        "This run uses scripts/train_torch_ddp.py instead: PyTorch averages the gradients.",
        "-x MASTER_ADDR=algo-1" if own_hosts else "",
    )


def script_here() -> ScriptChoice:
    """The same for plain ranks of this machine: what a job's image has does not help them."""
    status = horovod_status()
    if status.available:
        script = "train_tf_horovod.py"
        return ScriptChoice(script, "tensorflow", f"The ranks use {status}.")
    return ScriptChoice("train_torch_ddp.py", "torch", f"Horovod is missing here. {status}.")


def script_with_steps() -> ScriptChoice:
    """The Horovod script in nine marked steps, or the PyTorch one if Horovod is missing here."""
    status = horovod_status()
    if status.available:
        script = "train_tf_horovod_steps.py"
        return ScriptChoice(script, "tensorflow", f"The ranks use {status}: scripts/{script}.")
    return ScriptChoice(
        "train_torch_steps.py",
        "torch",
        f"Horovod is missing here. {status}.\n"
        "The ranks use PyTorch instead: scripts/train_torch_steps.py has the same nine steps. "
        "Where the text says hvd, read dist.",
        environment={"MASTER_PORT": str(free_port()), "GLOO_SOCKET_IFNAME": INTERFACE},
    )
