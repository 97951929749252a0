"""What a supervisor is to run: instances and their network."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

from local_sagemaker.cluster.bandwidth import Bandwidth

NETWORK = "10.88.0"
GATEWAY = f"{NETWORK}.1"
MAX_INSTANCES = 20  # of all running jobs together; a new AWS account has such a limit, too
NAMESPACES = "namespaces"
PROCESSES = "processes"
# Variables that every process of a job, or of a worker, carries: by them orphans are found.
JOB_ENV = "LOCAL_SAGEMAKER_JOB"
HOST_ENV = "LOCAL_SAGEMAKER_HOST"


@dataclasses.dataclass
class Host:
    """One instance: its name (algo-N), its directory and the variables it starts with.

    Of plain processes only: command, if it is not the job's; folder, where it starts; descriptors,
    which it inherits; output, the descriptors that take its standard output and error, which are
    read otherwise.
    """

    name: str
    directory: str
    env: dict[str, str]
    command: list[str] = dataclasses.field(default_factory=list)
    folder: str | None = None
    descriptors: list[int] = dataclasses.field(default_factory=list)
    output: list[int] = dataclasses.field(default_factory=list)

    @property
    def number(self) -> int:
        return int(self.name.rsplit("-", 1)[1])

    @property
    def address(self) -> str:
        """IPv4 address on the job's own network; N + 10, so that .1 stays the gateway's."""
        return f"{NETWORK}.{self.number + 10}"

    @property
    def bridge_port(self) -> str:
        """The bridge's end of the cable whose other end is the instance's eth0."""
        return f"{self.name}-p"

    @property
    def path(self) -> Path:
        return Path(self.directory)


@dataclasses.dataclass(frozen=True)
class Connectivity:
    """What a job's instances reach.

    closed_reason: why not each other; empty if they do. emulator: whether they reach it, and so S3.
    internet: whether they reach it, by HTTPS through a proxy. s3: whether the job's data comes and
    goes, which the emulator does. bandwidth: between instances; None if unlimited. service: the
    port of this machine's loopback that the gateway leads to; 0 if none.
    """

    closed_reason: str = ""
    emulator: bool = True
    internet: bool = True
    s3: bool = True
    bandwidth: Bandwidth | None = None
    service: int = 0


@dataclasses.dataclass
class ClusterSpec:
    """A job's instances.

    job: the training job's name. isolation: `namespaces` or `processes`.
    command: what every instance runs. port: the emulator's, on the host's loopback.
    grace_seconds: from SIGTERM to SIGKILL. prefix: the Python environment that stands in
    for the image. together: whether the first failure ends the other instances too. folder: of
    this machine, which the instances may write; empty if none.
    """

    job: str
    isolation: str
    hosts: list[Host]
    command: list[str]
    port: int = 0
    grace_seconds: float = 5.0
    connectivity: Connectivity = dataclasses.field(default_factory=Connectivity)
    prefix: str = sys.prefix
    together: bool = True
    folder: str = ""

    @property
    def bandwidth(self) -> Bandwidth | None:
        """Between several instances; None if unlimited."""
        return self.connectivity.bandwidth if len(self.hosts) > 1 else None

    @property
    def closed_reason(self) -> str:
        """Why several instances do not reach each other; empty if they do."""
        return self.connectivity.closed_reason if len(self.hosts) > 1 else ""
