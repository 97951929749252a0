"""All jobs: creating, finding, stopping, and finding out what a crash left behind."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path

from local_sagemaker.cluster.orphans import kill_orphans
from local_sagemaker.cluster.spec import MAX_INSTANCES, Connectivity
from local_sagemaker.core.aws import LocalAws, name_in
from local_sagemaker.core.json_record import readable
from local_sagemaker.protocol.errors import NOT_FOUND, AwsError, validation
from local_sagemaker.storage.files import remove
from local_sagemaker.training.job_record import JobRecord
from local_sagemaker.training.job_run import ClusterOptions, JobRun, clean

LOG = logging.getLogger(__name__)
JOIN_SECONDS = 15  # all jobs together
CRASHED = (
    "InternalServerError: the emulator ended while this job was running (it was killed, or "
    "the machine stopped). Nothing of the job runs any more; start it again."
)


class JobManager:
    """The jobs of one emulator. directory: one folder for each job, in the state directory."""

    def __init__(
        self,
        directory: Path,
        aws: LocalAws,
        isolation: str,
        grace_seconds: float,
        max_instances: int = MAX_INSTANCES,
    ) -> None:
        self.directory, self.state, self.aws = directory, directory.parent, aws
        self.max_instances = max_instances
        self.isolation, self.grace_seconds = isolation, grace_seconds
        self.lock = threading.Lock()
        self.runs: dict[str, JobRun] = {}
        self.records: dict[str, JobRecord] = {}
        directory.mkdir(parents=True, exist_ok=True)
        for record in readable(directory.glob("*/job.json"), JobRecord.read, "a job's record"):
            self.records[record.key] = record
            if not record.ended:
                self._recover(record)

    def _recover(self, record: JobRecord) -> None:
        orphans = kill_orphans(self.aws.mark(record.key))
        record.end("Failed", reason=CRASHED)
        LOG.warning("%s did not survive; %d processes were killed", record.name, orphans)
        clean(record.path.parent)

    def all(self, region: str) -> list[JobRecord]:
        """The jobs of a region."""
        return [record for record in list(self.records.values()) if record.data["region"] == region]

    def create(
        self,
        request: dict,
        arn: str,
        region: str,
        connectivity: Connectivity | None = None,
    ) -> JobRecord:
        """Start a job. Raises AwsError if the name is taken."""
        name = name_in(region, request["TrainingJobName"])
        count = request["ResourceConfig"]["InstanceCount"]
        with self.lock:
            self._check_limit(count)
            if name in self.records:
                raise AwsError(
                    "ResourceInUse",
                    "Training job names must be unique within an AWS account and region, and a "
                    f"training job with this name already exists ({arn})",
                )
            directory = self.directory / name
            record = JobRecord.create(directory, request, arn, region)
            cluster = ClusterOptions(
                self.isolation, self.grace_seconds, connectivity or Connectivity()
            )
            run = JobRun(record, self.aws, directory, cluster)
            self.records[name], self.runs[name] = record, run
        run.thread.start()
        return record

    def _check_limit(self, count: int) -> None:
        """Raise AwsError if `count` more instances are too many. AWS does not queue such a job."""
        used = sum(
            run.record.request["ResourceConfig"]["InstanceCount"]
            for run in self.runs.values()
            if run.thread.is_alive()
        )
        if used + count > self.max_instances:
            raise AwsError(
                "ResourceLimitExceeded",
                "The account-level service limit 'Number of instances across all training jobs' "
                f"is {self.max_instances} Instances, with current utilization of {used} "
                f"Instances and a request delta of {count} Instances. Wait for a job, stop one, or "
                "start the emulator with a higher limit: local-sagemaker start --max-instances N",
            )

    def find(self, name: str, region: str) -> JobRecord:
        if (record := self.records.get(name_in(region, name))) is None:
            raise validation(NOT_FOUND)
        return record

    def by_arn(self, arn: str) -> JobRecord | None:
        records = list(self.records.values())
        return next((record for record in records if record.data["arn"] == arn), None)

    def stop(self, name: str, region: str) -> None:
        """Begin to stop a job. Raises AwsError if it has ended."""
        record = self.find(name, region)
        if record.stopping():
            self.runs[record.key].stop()
        elif record.ended:
            raise validation(
                f"The request was rejected because the training job is in status {record.status}."
            )

    def delete(self, name: str, region: str) -> None:
        """Forget a job that has ended. Raises AwsError if there is none, or if it still runs."""
        key = name_in(region, name)
        run = self.runs.get(key)
        if run and run.record.ended:
            # The status is final a moment before the job's thread has put its files away.
            run.thread.join(JOIN_SECONDS)
        with self.lock:
            record = self.records.get(key)
            if record is None:
                raise AwsError("ResourceNotFound", NOT_FOUND)
            if not record.ended or (run and run.thread.is_alive()):
                raise AwsError(
                    "ResourceInUse",
                    f"The training job {name} is {record.status}. Only a job that is Completed, "
                    "Failed or Stopped can be deleted.",
                )
            remove(record.path.parent)
            self.records.pop(key)
            self.runs.pop(key, None)

    def shut_down(self) -> None:
        """Kill what runs, and say so in its record."""
        running = [run for run in self.runs.values() if run.thread.is_alive()]
        for run in running:
            run.kill()
        deadline = time.monotonic() + JOIN_SECONDS
        for run in running:
            run.thread.join(max(0.0, deadline - time.monotonic()))
