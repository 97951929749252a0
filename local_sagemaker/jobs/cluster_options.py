"""How a job's instances run: isolation, links, what they reach; and their command."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from local_sagemaker.cluster.links import Links
from local_sagemaker.cluster.spec import ClusterSpec
from local_sagemaker.jobs.record import JobRecord
from local_sagemaker.jobs.vpc import EVERYTHING, Reach

TRAIN = [sys.executable, "-m", "local_sagemaker.image.train"]
CONTAINER = [sys.executable, "-m", "local_sagemaker.image.container"]


@dataclass(frozen=True)
class ClusterOptions:
    """How a job's instances run.

    isolation: `namespaces` or `processes`. grace_seconds: from SIGTERM to SIGKILL.
    links: between instances; None for wide ones. reach: what instances reach.
    """

    isolation: str
    grace_seconds: float
    links: Links | None = None
    reach: Reach = EVERYTHING

    def cluster(self, record: JobRecord, hosts: list, endpoint_port: int) -> ClusterSpec:
        """What a supervisor is told to run on `hosts`."""
        return ClusterSpec(
            job=record.name,
            isolation=self.isolation,
            hosts=hosts,
            command=command(record.request),
            endpoint_port=endpoint_port,
            grace_seconds=self.grace_seconds,
            prefix=sys.prefix,
            links=self.links,
            proxy=self.reach.internet,
            closed=self.reach.closed,
            endpoint=self.reach.endpoint,
        )


def command(request: dict) -> list[str]:
    """What every instance runs: the request's own entrypoint, or else the toolkit's `train`."""
    algorithm = request["AlgorithmSpecification"]
    entrypoint = algorithm.get("ContainerEntrypoint")
    if not entrypoint:
        return TRAIN
    return [*CONTAINER, *entrypoint, *algorithm.get("ContainerArguments", [])]
