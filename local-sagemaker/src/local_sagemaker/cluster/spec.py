"""What the emulator tells a job's supervisor: a JSON file in the job's directory."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from local_sagemaker.cluster.bandwidth import Links

NETWORK = "10.88.0"
GATEWAY = f"{NETWORK}.1"
MOST_INSTANCES = 20  # of all running jobs together; a new AWS account has such a limit, too
NAMESPACES = "namespaces"
PROCESSES = "processes"


@dataclasses.dataclass
class Host:
    """One instance: its name (algo-N), its directory and the variables it starts with."""

    name: str
    directory: str
    env: dict[str, str]

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


@dataclasses.dataclass
class ClusterSpec:
    """A job's instances.

    job: the training job's name. isolation: `namespaces` or `processes`.
    command: what every instance runs. endpoint_port: the emulator on the host's loopback.
    proxy: whether instances may reach a package index through the host's network.
    grace_seconds: from SIGTERM to SIGKILL. prefix: the Python environment that stands in
    for the image. links: how narrow the instances' links are; None for wide ones. closed: why
    the instances do not reach each other, empty if they do. endpoint: whether they reach the
    emulator (S3).
    """

    job: str
    isolation: str
    hosts: list[Host]
    command: list[str]
    endpoint_port: int
    grace_seconds: float
    prefix: str
    proxy: bool = True
    links: Links | None = None
    closed: str = ""
    endpoint: bool = True

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(dataclasses.asdict(self), indent=1))

    @classmethod
    def read(cls, path: Path) -> ClusterSpec:
        raw = json.loads(path.read_text())
        raw["hosts"] = [Host(**host) for host in raw["hosts"]]
        if raw["links"]:
            raw["links"] = Links(**raw["links"])
        return cls(**raw)
