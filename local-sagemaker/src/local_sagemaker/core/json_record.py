"""The record of a job or an endpoint: what Describe... tells of it, kept in one JSON file."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Self, TypeVar

from local_sagemaker.core.aws import name_in
from local_sagemaker.storage.files import replace

LOG = logging.getLogger(__name__)
T = TypeVar("T")


def readable(paths: Iterable[Path], read: Callable[[Path], T], kind: str) -> Iterator[T]:
    """What `read` makes of each file, in their names' order. A damaged one is logged, left out.

    read: raises OSError, ValueError, KeyError or TypeError for a file that is not a record.
    what: "a job's record", for the log.
    """
    for path in sorted(paths):
        try:
            record = read(path)
        except (OSError, ValueError, KeyError, TypeError) as error:
            LOG.error("%s is not %s (%s): it is left out", path, kind, error)
        else:
            yield record


class JsonRecord:
    """What is known of a job or an endpoint. Every change is on disk before the method returns.

    path: its JSON file. data: the record itself, of which `needed` is never missing; times are
    Unix seconds.
    """

    needed: tuple[str, ...] = ("name", "request", "status", "created", "modified", "arn", "region")

    def __init__(self, path: Path, data: dict) -> None:
        self.path, self.data = path, data
        self.lock = threading.RLock()

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises OSError, ValueError or KeyError for anything that is not a record."""
        data = json.loads(path.read_text())
        for name in cls.needed:
            data[name]
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

    def now(self) -> float:
        """Unix seconds. A clock that is set back stands still here, until it has caught up."""
        return max(time.time(), self.data.get("modified", self.data["created"]))

    def save(self) -> None:
        with self.lock:
            self.data["modified"] = self.now()
            replace(self.path, json.dumps(self.data, indent=1).encode())
