"""What this package keeps: jobs, endpoints, transform jobs. And who answers which call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from local_sagemaker.api.hosting import HostingApi
from local_sagemaker.api.runtime import RuntimeApi
from local_sagemaker.api.tags import TagsApi
from local_sagemaker.api.training import TrainingApi
from local_sagemaker.api.transform import TransformApi
from local_sagemaker.jobs.aws import LocalAws
from local_sagemaker.jobs.manager import JobManager
from local_sagemaker.serving.endpoints import EndpointManager
from local_sagemaker.serving.transforms import TransformManager


class Managers:
    """All of one state directory, restored from it. Raises OSError where it cannot be used."""

    def __init__(self, state: Path, aws: LocalAws, isolation: str, *limits: float) -> None:
        """limits: seconds from SIGTERM to SIGKILL, and instances of all running jobs."""
        self.jobs = JobManager(state / "jobs", aws, isolation, *limits)
        self.endpoints = EndpointManager(state / "endpoints", aws)
        self.transforms = TransformManager(state / "transforms", aws)
        self.runtime = RuntimeApi(self.endpoints)

    def operations(self) -> dict[str, Callable[[dict, str], dict | None]]:
        """Operation name -> what answers it. None as an answer means: not ours, ask moto."""
        finders = [one.by_arn for one in (self.jobs, self.endpoints, self.transforms)]
        found: dict[str, Callable] = {}
        for api in (
            TrainingApi(self.jobs),
            HostingApi(self.endpoints),
            TransformApi(self.transforms),
            TagsApi(*finders),
        ):
            found |= api.operations()
        return found

    def start(self) -> None:
        """Bring back what was running. Called once requests are answered."""
        self.endpoints.start()

    def shut_down(self) -> None:
        """End every process, and say so in the records."""
        self.transforms.shut_down()
        self.endpoints.shut_down()
        self.jobs.shut_down()
