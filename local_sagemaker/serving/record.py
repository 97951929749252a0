"""The record of an endpoint or a transform job, kept in one JSON file."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

from local_sagemaker.disk.files import replace
from local_sagemaker.jobs.aws import name_in
from local_sagemaker.jobs.failure import REASON_LIMIT, shorten
from local_sagemaker.serving.model import Container

FILE = "record.json"
NEEDED = (
    *("name", "request", "container", "status", "created", "modified"),
    *("arn", "region", "tags", "stream"),
)


class Record:
    """Every change is on disk before the method returns. Times are Unix seconds.

    data: name, request (the call that made it), container, status, created, modified, arn,
    region, tags, stream (of its log); reason, where it failed; and what its kind adds.
    """

    def __init__(self, path: Path, data: dict) -> None:
        self.path, self.data = path, data
        self.lock = threading.RLock()

    @classmethod
    def create(cls, directory: Path, data: dict, container: Container) -> Record:
        """A new record in a directory of its own. data: without created, modified, container."""
        directory.mkdir(parents=True, exist_ok=True)
        made = cls(directory / FILE, data | {"created": time.time()})
        made.data["container"] = vars(container)
        made.save()
        return made

    @classmethod
    def read(cls, path: Path) -> Record:
        """Raises OSError, ValueError, KeyError or TypeError for anything that is not a record."""
        data = json.loads(path.read_text())
        for name in NEEDED:
            data[name]
        Container(**data["container"])
        return cls(path, data)

    @property
    def name(self) -> str:
        return self.data["name"]

    @property
    def key(self) -> str:
        """Its name among those of all regions."""
        return name_in(self.data["region"], self.name)

    @property
    def status(self) -> str:
        return self.data["status"]

    @property
    def container(self) -> Container:
        return Container(**self.data["container"])

    def enter(self, status: str, reason: str | None = None, **more: object) -> None:
        """Begin a status. reason: why it failed. more: what else changes with it."""
        with self.lock:
            self.data |= more
            self.data["status"] = status
            if reason:
                self.data["reason"] = shorten(reason, REASON_LIMIT)
            self.save()

    def save(self) -> None:
        with self.lock:
            self.data["modified"] = time.time()
            replace(self.path, json.dumps(self.data, indent=1).encode())
