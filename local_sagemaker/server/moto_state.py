"""Keeps moto's state on disk, so that a restart (or a kill -9) loses nothing.

moto holds everything in memory. After each request that changes something, the changed
state is written here before the client gets its answer:

    s3.pickle     buckets and the names and metadata of their objects
    rest.pickle   every other service, which may refer to buckets (CloudFormation does)
    blobs/        the bytes of each object, written once, read when asked for

Pickles hold classes of moto's, so they belong to one version of it; the version is in the
file, and a state of another version is refused with a sentence instead of a stack trace.
"""

from __future__ import annotations

import io
import logging
import pickle
import threading
import time
from pathlib import Path

import moto
from moto.backends import get_backend
from moto.core.base_backend import BackendDict

from local_sagemaker.server.files import replace
from local_sagemaker.server.pickling import StatePickler, StateUnpickler

LOG = logging.getLogger(__name__)
WRITE_TRIES = 20


class StateError(Exception):
    """The state on disk cannot be used; the message says what to do."""


class MotoState:
    """moto's backends, in memory and in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.blobs = directory / "blobs"
        self.blobs.mkdir(parents=True, exist_ok=True)
        self.lock = threading.RLock()  # held by a request that changes state, and by save
        self.dirty: set[str] = set()
        self.not_kept: set[str] = set()  # services whose state cannot be pickled
        self.used: dict[str, set[str]] = {}  # file -> names of the blobs that it refers to
        self.unused: set[str] = set()  # blobs that the last save found to be an object's no more

    def load(self) -> None:
        """Restore what an earlier process saved. Raises StateError if that cannot be."""
        for file in ("s3.pickle", "rest.pickle"):  # the rest refers to buckets
            for name, accounts in (self._read(file) or {}).items():
                self._restore(name, accounts)
        for _ in range(2):  # the first finds them, the second removes them
            self._drop_unused_blobs()

    def changed(self, service: str) -> None:
        """Note that `service` changed; `save` will write it."""
        with self.lock:
            self.dirty.add("s3.pickle" if service == "s3" else "rest.pickle")
            if service == "cloudformation":  # a stack may make or delete buckets
                self.dirty.add("s3.pickle")

    def save(self) -> None:
        """Write what changed since the last call."""
        with self.lock:
            for name in sorted(self.dirty, reverse=True):  # s3 first: the rest refers to it
                self._write(name)
                if name == "s3.pickle":
                    self._drop_unused_blobs()
            self.dirty.clear()

    def forget_unsaved(self) -> None:
        """Make S3 again what it is on disk. Whoever changed it since is told of a failure."""
        with self.lock:
            for name, accounts in (self._read("s3.pickle") or {}).items():
                self._restore(name, accounts)
                self.dirty.discard("s3.pickle")

    def _drop_unused_blobs(self) -> None:
        """Remove what was unused at the last save, too: a reader may have begun before it."""
        used = set().union(*self.used.values())
        unused = {path.name for path in self.blobs.iterdir()} - used
        for name in unused & self.unused:
            (self.blobs / name).unlink(missing_ok=True)
        self.unused = unused

    def _write(self, name: str) -> None:
        services = [
            one
            for one in BackendDict._instances
            if (one.service_name == "s3") == (name == "s3.pickle")
            and one.service_name not in self.not_kept
        ]
        try:
            data, used = self._dump(services, refer_to_buckets=name != "s3.pickle")
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            if not (culprits := self._not_picklable(services)):
                raise
            # Better to forget one service at the end than to refuse every request from now on.
            self.not_kept |= culprits
            LOG.error("%s will not outlive this process: %s", ", ".join(culprits), error)
            return self._write(name)
        header = f"moto {moto.__version__}\n".encode()
        replace(self.directory / name, header + data)
        self.used[name] = used

    def _dump(self, services: list[BackendDict], refer_to_buckets: bool) -> tuple[bytes, set[str]]:
        """A pickle, and the names of the blobs that it refers to.

        Requests that only read run meanwhile, and may make moto fill in a dictionary.
        """
        for left in reversed(range(WRITE_TRIES)):
            buffer = io.BytesIO()
            pickler = StatePickler(buffer, self.blobs, refer_to_buckets)
            try:
                pickler.dump(
                    {
                        service.service_name: {
                            account: dict(regions) for account, regions in list(service.items())
                        }
                        for service in services
                    }
                )
                return buffer.getvalue(), pickler.used
            except RuntimeError as error:
                if "changed size during iteration" not in str(error) or not left:
                    raise
                time.sleep(0.005)
        raise AssertionError("unreachable")

    def _not_picklable(self, services: list[BackendDict]) -> set[str]:
        found = set()
        for service in services:
            try:
                self._dump([service], refer_to_buckets=service.service_name != "s3")
            except (TypeError, AttributeError, pickle.PicklingError):
                found.add(service.service_name)
        return found

    def _read(self, name: str) -> dict | None:
        path = self.directory / name
        if not path.exists():
            return None
        with path.open("rb") as stream:
            version = stream.readline().decode("utf-8", "replace").strip()
            if version != f"moto {moto.__version__}":
                raise StateError(
                    f"{path} was written by {version or 'something else'}, and this is moto "
                    f"{moto.__version__}. Start afresh with `workshop down --forget`."
                )
            try:
                unpickler = StateUnpickler(stream, self.blobs)
                found = unpickler.load()
                self.used[name] = unpickler.used
                return found
            except Exception as error:
                raise StateError(
                    f"{path} cannot be read ({type(error).__name__}: {error}). "
                    "Start afresh with `workshop down --forget`."
                ) from error

    @staticmethod
    def _restore(name: str, accounts: dict) -> None:
        for account, regions in accounts.items():
            for region, backend in regions.items():
                get_backend(name)[account][region] = backend
