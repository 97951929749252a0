"""Whether Horovod is installed here, and what the Horovod lessons run where it is not."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import local_sagemaker
from workshop.launch.processes import INTERFACE, free_port

# A rank that waits gives its core to others. By default it spins, which is right only where
# every rank has a core of its own.
YIELD = "-x OMPI_MCA_mpi_yield_when_idle=1"
INSTEAD = {
    "train_tf_horovod.py": "train_torch_ddp.py",
    "train_tf_horovod_steps.py": "train_torch_steps.py",
}


@dataclass(frozen=True)
class HorovodStatus:
    """available: whether scripts can import it. why and do are empty where it is."""

    available: bool
    version: str = ""
    why: str = ""
    do: str = ""

    def __str__(self) -> str:
        return f"Horovod {self.version}" if self.available else f"{self.why}. To have it: {self.do}"


def horovod_status() -> HorovodStatus:
    """Look for Horovod with its TensorFlow library, without importing TensorFlow."""
    spec = importlib.util.find_spec("horovod")
    folders = spec.submodule_search_locations if spec else None
    libraries = [lib for f in folders or [] for lib in Path(f, "tensorflow").glob("mpi_lib*.so")]
    if libraries:
        return HorovodStatus(True, importlib.metadata.version("horovod"))
    left_by_set_up = Path(sys.prefix) / "horovod.json"
    try:
        content = json.loads(left_by_set_up.read_text())
        return HorovodStatus(False, why=content["reason"], do=content["do"])
    except (OSError, ValueError, KeyError):
        return HorovodStatus(False, why="Horovod is not installed", do="run make setup")


@dataclass(frozen=True)
class ScriptChoice:
    """script: a file name. library: "tensorflow" or "torch". explanation: for display.

    mpi_options: for a job's mpirun. environment: variables that ranks on this machine need.
    """

    script: str
    library: str
    explanation: str
    mpi_options: str = ""
    environment: dict[str, str] = field(default_factory=dict)


def horovod_script(script: str, session=None) -> ScriptChoice:
    """The Horovod script; where Horovod is missing, a PyTorch script that mpirun starts alike.

    Args:
        script: train_tf_horovod.py of scripts/train/, or train_tf_horovod_steps.py of
            scripts/demos/. The other is in the same folder.
        session: what workshop.session returned, for a job; None for ranks on this machine. On AWS
            the container image has Horovod, whatever this machine has.
    """
    status = horovod_status()
    on_aws = session is not None and session.target == "aws"
    if on_aws or status.available:
        which = "the container image's Horovod" if on_aws else str(status)
        options = YIELD if session else ""
        return ScriptChoice(script, "tensorflow", f"The ranks use {which}.", options)
    instead = INSTEAD[script]
    explanation = (
        f"Horovod is missing here. {status}.\n"
        f"PyTorch averages the gradients instead: {instead}, with the same steps. Where "
        "the text says hvd, read dist."
    )
    if session is None:
        variables = {"MASTER_PORT": str(free_port()), "GLOO_SOCKET_IFNAME": INTERFACE}
        return ScriptChoice(instead, "torch", explanation, environment=variables)
    emulator = local_sagemaker.running(local_sagemaker.state_directory())
    # PyTorch's ranks meet at an address; plain processes meet on loopback, its default.
    has_hosts = emulator is not None and emulator.isolation == "namespaces"
    options = "-x MASTER_ADDR=algo-1" if has_hosts else ""
    return ScriptChoice(instead, "torch", explanation, options)
