"""The record of an endpoint or a transform job."""

from __future__ import annotations

import time
from pathlib import Path

from local_sagemaker.core.failure import REASON_LIMIT, shorten
from local_sagemaker.core.json_record import JsonRecord
from local_sagemaker.hosting.model import Container

FILE = "record.json"


class Record(JsonRecord):
    """data: name, request (the call that made it), container, status, created, modified, arn,
    region, tags, stream (of its log); reason, where it failed; and what its kind adds."""

    needed = (*JsonRecord.needed, "container", "tags", "stream")

    @classmethod
    def create(cls, directory: Path, data: dict, container: Container) -> Record:
        """A new record in a directory of its own. data: without created, modified, container."""
        directory.mkdir(parents=True, exist_ok=True)
        fields = {"created": time.time(), "container": vars(container)}
        made = cls(directory / FILE, data | fields)
        made.save()
        return made

    @classmethod
    def read(cls, path: Path) -> Record:
        """Raises OSError, ValueError, KeyError or TypeError for anything that is not a record."""
        record = super().read(path)
        Container(**record.data["container"])
        return record

    @property
    def container(self) -> Container:
        return Container(**self.data["container"])

    def enter(self, status: str, reason: str | None = None, **fields: object) -> None:
        """Begin a status. reason: why it failed. more: what else changes with it."""
        with self.lock:
            self.data |= fields
            self.data["status"] = status
            if reason:
                self.data["reason"] = shorten(reason, REASON_LIMIT)
            self.save()
