"""Jobs and endpoints: what is known of each, in a JSON file, the threads of those that run, and
what every FailureReason has in common."""

from __future__ import annotations

import json
import logging
import threading
import time
import traceback
from pathlib import Path
from typing import Any, Self

from local_sagemaker.core.aws import AWS_ERRORS, LocalAws, name_in
from local_sagemaker.storage.files import remove, replace

LOG = logging.getLogger(__name__)
FILE = "record.json"
JOIN_SECONDS = 15  # for everything that runs, together
CRASHED = (
    "InternalServerError: the emulator ended while this job was running (it was killed, or "
    "the machine stopped). Nothing of the job runs any more; start it again under another name."
)


class Record:
    """What is known of a job or an endpoint. Every change is on disk before the method returns.

    path: its JSON file. data: the record itself: name, arn, region, request (the call that made
    it), status, created, modified (Unix seconds), tags, reason (why it failed), and what its kind
    adds.
    """

    needed: tuple[str, ...] = ("name", "request", "status", "created", "modified", "arn", "region")

    def __init__(self, path: Path, data: dict) -> None:
        self.path, self.data = path, data
        self.lock = threading.RLock()

    @classmethod
    def create(cls, folder: Path, request: dict, status: str, **fields: Any) -> Self:
        """A new record, in a folder of its own. fields: name, arn, region, and others."""
        folder.mkdir(parents=True, exist_ok=True)  # a create that failed may have left it
        data = {"request": request, "status": status, "created": time.time()}
        record = cls(folder / FILE, data | {"tags": request.get("Tags", [])} | fields)
        record.save()
        return record

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises OSError, ValueError, KeyError or TypeError for anything that is not a record."""
        data = json.loads(path.read_text())
        for name in cls.needed:
            data[name]
        return cls(path, data)

    @property
    def name(self) -> str:
        return self.data["name"]

    @property
    def region(self) -> str:
        return self.data["region"]

    @property
    def request(self) -> dict:
        return self.data["request"]

    @property
    def status(self) -> str:
        return self.data["status"]

    @property
    def key(self) -> str:
        """Its name among those of all regions."""
        return name_in(self.region, self.name)

    def now(self) -> float:
        """Unix seconds. A clock that is set back stands still here, until it has caught up."""
        return max(time.time(), self.data.get("modified", self.data["created"]))

    def set_status(self, status: str, reason: str | None = None, **fields: object) -> None:
        """reason: why it failed. fields: what else changes with the status."""
        with self.lock:
            self.data |= {"status": status} | fields
            if reason:
                self.data["reason"] = shorten(reason, REASON_LIMIT)
            self.save()

    def remove_all_else(self) -> None:
        """Remove everything in its folder but its file: the rest is in S3 and in the logs."""
        for path in self.path.parent.iterdir():
            if path.is_dir():
                remove(path)
            elif path.name != FILE:
                path.unlink(missing_ok=True)

    def save(self) -> None:
        with self.lock:
            self.data["modified"] = self.now()
            replace(self.path, json.dumps(self.data, indent=1).encode())


class Registry:
    """All jobs, or all endpoints, of one emulator. directory: a folder for each of them.

    records: key -> Record. runs: key -> what runs it: an object with `thread` and `kill`.
    """

    kind = Record

    def __init__(self, directory: Path, aws: LocalAws) -> None:
        self.directory, self.aws = directory, aws
        self.lock = threading.Lock()
        self.records: dict[str, Any] = {}
        self.runs: dict[str, Any] = {}
        directory.mkdir(parents=True, exist_ok=True)
        for path in sorted(directory.glob(f"*/{FILE}")):
            try:
                record = self.kind.read(path)
            except (OSError, ValueError, KeyError, TypeError) as error:
                LOG.error("%s is damaged (%s): it is left out", path, error)
            else:
                self.records[record.key] = record
                self.recover(record)

    def recover(self, record: Any) -> None:
        """Clean up after an earlier process of the emulator."""
        raise NotImplementedError

    def find(self, name: str, region: str) -> Any:
        """The record, or None."""
        return self.records.get(name_in(region, name))

    def in_region(self, region: str) -> list:
        return [record for record in list(self.records.values()) if record.region == region]

    def by_arn(self, arn: str) -> Any:
        records = list(self.records.values())
        return next((record for record in records if record.data["arn"] == arn), None)

    def shut_down(self) -> None:
        """End everything that runs, and wait for it."""
        running = [run for run in self.runs.values() if run.thread.is_alive()]
        for run in running:
            run.kill()
        deadline = time.monotonic() + JOIN_SECONDS
        for run in running:
            run.thread.join(max(0.0, deadline - time.monotonic()))


REASON_LIMIT = 1024  # characters; AWS's limit


def internal(name: str, error: Exception) -> str:
    """The reason where not the script failed, but what runs it. name: whose reason it is.

    It is logged, and an unexpected error with the place where it was raised.
    """
    if isinstance(error, (*AWS_ERRORS, OSError)):
        LOG.warning("%s: %s", name, error)
        return f"InternalServerError: {error}"
    LOG.error("%s: %s", name, "".join(traceback.format_exception(error)))
    return f"InternalServerError: {type(error).__name__}: {error}"


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters. AWS keeps the start; a traceback's last line tells more."""
    if len(text) <= limit:
        return text
    end = limit // 2
    return text[: limit - end - 5] + "\n...\n" + text[-end:]
