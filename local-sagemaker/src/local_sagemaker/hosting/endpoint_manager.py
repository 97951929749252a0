"""All endpoints: creating, finding, asking, deleting, and starting them again after a restart."""

from __future__ import annotations

import threading
import uuid
from pathlib import Path

from local_sagemaker.cluster.orphans import kill_orphans
from local_sagemaker.core.aws import LocalAws, name_in
from local_sagemaker.core.json_record import readable
from local_sagemaker.hosting import endpoint_run
from local_sagemaker.hosting.endpoint_run import EndpointRun
from local_sagemaker.hosting.hosting_record import FILE, Record
from local_sagemaker.hosting.model import Container
from local_sagemaker.protocol.errors import validation
from local_sagemaker.storage.files import remove

STARTED_AGAIN = ("Creating", "InService", "SystemUpdating")


class EndpointManager:
    """The endpoints of one emulator. directory: one folder for each of them."""

    def __init__(self, directory: Path, aws: LocalAws) -> None:
        self.directory, self.aws = directory, aws
        self.lock = threading.Lock()
        self.runs: dict[str, EndpointRun] = {}
        directory.mkdir(parents=True, exist_ok=True)
        for record in readable(directory.glob(f"*/{FILE}"), Record.read, "an endpoint's record"):
            self._recover(record)

    def _recover(self, record: Record) -> None:
        folder = record.path.parent
        kill_orphans(self.aws.mark(endpoint_run.mark(record.key)))
        remove_if_there(folder / "partial")
        self.runs[record.key] = EndpointRun(record, self.aws, folder)
        if record.status in STARTED_AGAIN:
            record.enter("SystemUpdating")

    def start(self) -> None:
        """Start again what was in service. Called once the emulator answers."""
        for run in self.all():
            if run.record.status == "SystemUpdating":
                run.thread.start()

    def all(self) -> list[EndpointRun]:
        return list(self.runs.values())

    def create(self, data: dict, container: Container) -> Record:
        """Start an endpoint. Raises AwsError if the name is taken.

        data: name, arn, region, request, tags, config (its name) and variant (of the config).
        """
        key = name_in(data["region"], data["name"])
        with self.lock:
            if key in self.runs:
                # AWS's words: https://github.com/aws/amazon-sagemaker-examples/issues/2491
                raise validation(f'Cannot create already existing endpoint "{data["arn"]}".')
            # CloudWatch's stream of a variant: <variant>/<instance id>
            stream = f"{data['variant']['VariantName']}/i-{uuid.uuid4().hex[:17]}"
            data = data | {"status": "Creating", "stream": stream}
            record = Record.create(self.directory / key, data, container)
            self.runs[key] = EndpointRun(record, self.aws, self.directory / key)
        self.runs[key].thread.start()
        return record

    def find(self, name: str, region: str) -> EndpointRun | None:
        return self.runs.get(name_in(region, name))

    def by_arn(self, arn: str) -> Record | None:
        return next((run.record for run in self.all() if run.record.data["arn"] == arn), None)

    def delete(self, name: str, region: str) -> bool:
        """End an endpoint and forget it; False if there is none."""
        with self.lock:
            run = self.find(name, region)
            if run is None or run.record.status == "Deleting":
                return run is not None
            run.record.enter("Deleting")
        if run.thread.ident is not None:  # else it failed before a restart, and never ran here
            run.end()
        remove(run.directory)
        with self.lock:
            self.runs.pop(run.record.key, None)
        return True

    def shut_down(self) -> None:
        """End the workers. What is in service stays so in its record: `start` brings it back."""
        running = [run for run in self.all() if run.thread.is_alive()]
        for run in running:
            run.end()


def remove_if_there(folder: Path) -> None:
    """Remove a directory that an earlier process may have left."""
    if folder.is_dir():
        remove(folder)
