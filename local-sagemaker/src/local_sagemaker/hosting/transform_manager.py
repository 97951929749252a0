"""All transform jobs: creating, finding, stopping, and finding out what a crash left behind."""

from __future__ import annotations

import threading
import time
import uuid
from pathlib import Path

from local_sagemaker.cluster.orphans import kill_orphans
from local_sagemaker.core.aws import LocalAws, name_in
from local_sagemaker.core.json_record import readable
from local_sagemaker.hosting import transform_run
from local_sagemaker.hosting.hosting_record import FILE, Record
from local_sagemaker.hosting.model import Container
from local_sagemaker.hosting.transform_run import TransformRun, clean
from local_sagemaker.protocol.errors import AwsError, validation

RUNNING = ("InProgress", "Stopping")
JOIN_SECONDS = 10
CRASHED = (
    "InternalServerError: the emulator ended while this job was running. Nothing of the job "
    "runs any more; start it again under another name."
)


class TransformManager:
    """The transform jobs of one emulator. directory: one folder for each of them."""

    def __init__(self, directory: Path, aws: LocalAws) -> None:
        self.directory, self.aws = directory, aws
        self.lock = threading.Lock()
        self.records: dict[str, Record] = {}
        self.runs: dict[str, TransformRun] = {}
        directory.mkdir(parents=True, exist_ok=True)
        kind = "a transform job's record"
        for record in readable(directory.glob(f"*/{FILE}"), Record.read, kind):
            self.records[record.key] = record
            if record.status in RUNNING:
                kill_orphans(aws.mark(transform_run.mark(record.key)))
                record.enter("Failed", CRASHED, ended=time.time())
                clean(record.path.parent)

    def all(self, region: str) -> list[Record]:
        """The jobs of a region."""
        return [record for record in list(self.records.values()) if record.data["region"] == region]

    def create(self, data: dict, container: Container) -> Record:
        """Start a job. Raises AwsError if the name is taken.

        data: name, arn, region, request, tags.
        """
        name, key = data["name"], name_in(data["region"], data["name"])
        with self.lock:
            if key in self.records:
                raise AwsError(
                    "ResourceInUse",
                    "Job name must be unique within an AWS account and region, and a job with this "
                    f"name already exists ({data['arn']})",
                )
            # CloudWatch's stream: <job>/<instance id>-<seconds>
            stream = f"{name}/i-{uuid.uuid4().hex[:17]}-{int(time.time())}"
            data = data | {"status": "InProgress", "stream": stream}
            record = Record.create(self.directory / key, data, container)
            run = TransformRun(record, self.aws, self.directory / key)
            self.records[key], self.runs[key] = record, run
        run.thread.start()
        return record

    def find(self, name: str, region: str) -> Record | None:
        return self.records.get(name_in(region, name))

    def by_arn(self, arn: str) -> Record | None:
        records = list(self.records.values())
        return next((record for record in records if record.data["arn"] == arn), None)

    def stop(self, record: Record) -> None:
        """Begin to stop a job. Raises AwsError if it has ended."""
        with record.lock:
            if record.status not in RUNNING:
                raise validation(
                    "The request was rejected because the transform job is in status "
                    f"{record.status}."
                )
            if record.status == "InProgress":
                record.enter("Stopping")
        self.runs[record.key].stop()

    def shut_down(self) -> None:
        """Break off what runs, and say so in its record."""
        running = [run for run in self.runs.values() if run.thread.is_alive()]
        for run in running:
            run.stop()
        deadline = time.monotonic() + JOIN_SECONDS
        for run in running:
            run.thread.join(max(0.0, deadline - time.monotonic()))
