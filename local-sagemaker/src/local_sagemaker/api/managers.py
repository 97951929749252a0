"""What this package keeps: jobs, endpoints, transform jobs, and their tags. Who answers what."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from local_sagemaker.api.hosting import Endpoints
from local_sagemaker.api.runtime import RuntimeApi
from local_sagemaker.api.training import TrainingJobs
from local_sagemaker.api.transform import TransformJobs
from local_sagemaker.core.aws import LocalAws
from local_sagemaker.core.records import Record
from local_sagemaker.protocol.errors import NOT_FOUND, validation

# A thing of these kinds that nobody here knows was deleted: moto never knew it.
OURS = (":training-job/", ":transform-job/", ":endpoint/")


class Managers:
    """All of one state directory, restored from it. Raises OSError where it cannot be used."""

    def __init__(self, state: Path, aws: LocalAws, isolation: str, grace_seconds: float) -> None:
        """grace_seconds: from SIGTERM to SIGKILL."""
        self.jobs = TrainingJobs(state / "jobs", aws, isolation, grace_seconds)
        self.endpoints = Endpoints(state / "endpoints", aws)
        self.transforms = TransformJobs(state / "transforms", aws)
        self.runtime = RuntimeApi(self.endpoints)

    def operations(self) -> dict[str, Callable[[dict, str], dict | None]]:
        """Operation name -> what answers it. None as an answer means: not ours, ask moto."""
        return {
            "AddTags": self.add_tags,
            "ListTags": self.list_tags,
            "DeleteTags": self.delete_tags,
            **self.jobs.operations(),
            **self.endpoints.operations(),
            **self.transforms.operations(),
        }

    def add_tags(self, request: dict, region: str) -> dict | None:
        if (record := self._tagged(request)) is None:
            return None
        new = {tag["Key"]: tag for tag in [*record.data["tags"], *request["Tags"]]}
        return self._set_tags(record, list(new.values()))

    def list_tags(self, request: dict, region: str) -> dict | None:
        record = self._tagged(request)
        return None if record is None else {"Tags": record.data["tags"]}

    def delete_tags(self, request: dict, region: str) -> dict | None:
        if (record := self._tagged(request)) is None:
            return None
        gone = set(request["TagKeys"])
        self._set_tags(record, [tag for tag in record.data["tags"] if tag["Key"] not in gone])
        return {}

    def _set_tags(self, record: Record, tags: list[dict]) -> dict:
        record.data["tags"] = tags
        record.save()
        return {"Tags": tags}

    def _tagged(self, request: dict) -> Record | None:
        """The record whose tags a request means; None if it means something of moto's."""
        arn = request["ResourceArn"]
        for registry in (self.jobs, self.endpoints, self.transforms):
            if record := registry.by_arn(arn):
                return record
        if any(kind in arn for kind in OURS):
            raise validation(NOT_FOUND)
        return None

    def start(self) -> None:
        """Bring back what was running. Called once requests are answered."""
        self.endpoints.start()

    def shut_down(self) -> None:
        """End every process, and say so in the records."""
        for registry in (self.transforms, self.endpoints, self.jobs):
            registry.shut_down()
