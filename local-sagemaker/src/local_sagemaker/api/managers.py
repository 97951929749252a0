"""What this package keeps: jobs, endpoints, transform jobs, and their tags. Who answers what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from local_sagemaker.api.hosting import HostingApi
from local_sagemaker.api.runtime import RuntimeApi
from local_sagemaker.api.training import TrainingApi
from local_sagemaker.api.transform import TransformApi
from local_sagemaker.core.aws import LocalAws
from local_sagemaker.hosting.endpoint_manager import EndpointManager
from local_sagemaker.hosting.transform_manager import TransformManager
from local_sagemaker.protocol.errors import NOT_FOUND, validation
from local_sagemaker.training.job_manager import JobManager

# A thing of these kinds that nobody here knows was deleted: moto never knew it.
OURS = (":training-job/", ":transform-job/", ":endpoint/")


class Managers:
    """All of one state directory, restored from it. Raises OSError where it cannot be used."""

    def __init__(
        self, state: Path, aws: LocalAws, isolation: str, grace_seconds: float, max_instances: int
    ) -> None:
        """grace_seconds: from SIGTERM to SIGKILL. max_instances: of all running jobs."""
        self.jobs = JobManager(state / "jobs", aws, isolation, grace_seconds, max_instances)
        self.endpoints = EndpointManager(state / "endpoints", aws)
        self.transforms = TransformManager(state / "transforms", aws)
        self.runtime = RuntimeApi(self.endpoints)

    def operations(self) -> dict[str, Callable[[dict, str], dict | None]]:
        """Operation name -> what answers it. None as an answer means: not ours, ask moto."""
        operations: dict[str, Callable] = {
            "AddTags": self.add_tags,
            "ListTags": self.list_tags,
            "DeleteTags": self.delete_tags,
        }
        for api in (
            TrainingApi(self.jobs),
            HostingApi(self.endpoints),
            TransformApi(self.transforms),
        ):
            operations |= api.operations()
        return operations

    def add_tags(self, request: dict, region: str) -> dict | None:
        if (record := self._tagged(request)) is None:
            return None
        new = {tag["Key"]: tag for tag in [*record.data["tags"], *request["Tags"]]}
        record.data["tags"] = list(new.values())
        record.save()
        return {"Tags": record.data["tags"]}

    def list_tags(self, request: dict, region: str) -> dict | None:
        record = self._tagged(request)
        return None if record is None else {"Tags": record.data["tags"]}

    def delete_tags(self, request: dict, region: str) -> dict | None:
        if (record := self._tagged(request)) is None:
            return None
        gone = set(request["TagKeys"])
        record.data["tags"] = [tag for tag in record.data["tags"] if tag["Key"] not in gone]
        record.save()
        return {}

    def _tagged(self, request: dict) -> Any:
        """The record whose tags a request means; None if it means something of moto's."""
        arn = request["ResourceArn"]
        for manager in (self.jobs, self.endpoints, self.transforms):
            if record := manager.by_arn(arn):
                return record
        if any(kind in arn for kind in OURS):
            raise validation(NOT_FOUND)
        return None

    def start(self) -> None:
        """Bring back what was running. Called once requests are answered."""
        self.endpoints.start()

    def shut_down(self) -> None:
        """End every process, and say so in the records."""
        self.transforms.shut_down()
        self.endpoints.shut_down()
        self.jobs.shut_down()
