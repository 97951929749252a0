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

import contextlib
import io
import logging
import os
import pickle
import threading
import time
import uuid
from pathlib import Path
from typing import get_args

import moto
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)
from moto.backends import get_backend
from moto.core.base_backend import BackendDict
from moto.s3.models import FakeBucket, FakeKey

LOG = logging.getLogger(__name__)
LOCKS = (type(threading.Lock()), type(threading.RLock()))
PRIVATE_KEYS = get_args(PrivateKeyTypes)
WRITE_TRIES = 20


class StateError(Exception):
    """The state on disk cannot be used; the message says what to do."""


class BlobBuffer:
    """What moto takes for an object's buffer: a file that is open only while it is read."""

    def __init__(self, path: Path) -> None:
        self.path, self.position = path, 0

    def seek(self, position: int) -> None:
        self.position = position

    def read(self, size: int = -1) -> bytes:
        with self.path.open("rb") as stream:
            stream.seek(self.position)
            data = stream.read(size)
        self.position += len(data)
        return data

    def close(self) -> None:
        """Nothing is open."""

    def truncate(self) -> None:
        raise io.UnsupportedOperation("an object's bytes are never changed in place")


class MotoState:
    """moto's backends, in memory and in `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.blobs = directory / "blobs"
        self.blobs.mkdir(parents=True, exist_ok=True)
        self.lock = threading.RLock()  # held by a request that changes state, and by save
        self.dirty: set[str] = set()
        self.not_kept: set[str] = set()  # services whose state cannot be pickled

    def load(self) -> None:
        """Restore what an earlier process saved. Raises StateError if that cannot be."""
        used: set[str] = set()
        for file in ("s3.pickle", "rest.pickle"):  # the rest refers to buckets
            for name, accounts in (self._read(file, used) or {}).items():
                self._restore(name, accounts)
        for path in self.blobs.iterdir():
            if path.name not in used:  # an object's that was deleted or replaced
                path.unlink()

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
            self.dirty.clear()

    def _write(self, name: str) -> None:
        services = [
            one
            for one in BackendDict._instances
            if (one.service_name == "s3") == (name == "s3.pickle")
            and one.service_name not in self.not_kept
        ]
        try:
            data = self._dump(services, refer_to_buckets=name != "s3.pickle")
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            if not (culprits := self._not_picklable(services)):
                raise
            # Better to forget one service at the end than to refuse every request from now on.
            self.not_kept |= culprits
            LOG.error("%s will not outlive this process: %s", ", ".join(culprits), error)
            return self._write(name)
        header = f"moto {moto.__version__}\n".encode()
        replace(self.directory / name, header + data)

    def _dump(self, services: list[BackendDict], refer_to_buckets: bool) -> bytes:
        """Requests that only read run meanwhile, and may make moto fill in a dictionary."""
        for left in reversed(range(WRITE_TRIES)):
            buffer = io.BytesIO()
            pickler = _Pickler(buffer, self.blobs, refer_to_buckets)
            try:
                pickler.dump(
                    {
                        service.service_name: {
                            account: dict(regions) for account, regions in list(service.items())
                        }
                        for service in services
                    }
                )
                return buffer.getvalue()
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

    def _read(self, name: str, used: set[str]) -> dict | None:
        """What a file holds; the names of the blobs that it refers to are added to `used`."""
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
                return _Unpickler(stream, self.blobs, used).load()
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


class _Pickler(pickle.Pickler):
    def __init__(self, stream: io.BytesIO, blobs: Path, refer_to_buckets: bool) -> None:
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)
        self.blobs, self.refer_to_buckets = blobs, refer_to_buckets

    def persistent_id(self, value: object) -> object:
        if self.refer_to_buckets and isinstance(value, FakeBucket):
            return ("bucket", value.account_id, value.partition, value.name)
        return None

    def reducer_override(self, value: object) -> object:
        if isinstance(value, LOCKS):
            return threading.RLock if isinstance(value, LOCKS[1]) else threading.Lock, ()
        if isinstance(value, PRIVATE_KEYS):  # KMS
            der = value.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
            return _restore_private_key, (der,)
        if not isinstance(value, FakeKey):
            return NotImplemented
        if not isinstance(value._value_buffer, BlobBuffer):
            path = self.blobs / uuid.uuid4().hex
            replace(path, value.value)
            value._value_buffer.close()
            value._value_buffer = BlobBuffer(path)
        state = {k: v for k, v in value.__dict__.items() if k not in ("_value_buffer", "lock")}
        return _restore_key, (value._value_buffer.path.name, state), None, None, None


def _restore_key(blob: str, state: dict) -> FakeKey:
    key = FakeKey.__new__(FakeKey)
    key.__dict__.update(state)
    key.lock = threading.Lock()
    key._value_buffer = BlobBuffer(Path(blob))  # the unpickler knows the directory
    return key


def _restore_private_key(der: bytes) -> PrivateKeyTypes:
    return load_der_private_key(der, None)


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream, blobs: Path, used: set[str]) -> None:
        super().__init__(stream)
        self.blobs, self.used = blobs, used

    def find_class(self, module: str, name: str) -> object:
        if (module, name) == (__name__, "_restore_key"):
            return self._key
        return super().find_class(module, name)

    def _key(self, blob: str, state: dict) -> FakeKey:
        self.used.add(blob)
        return _restore_key(str(self.blobs / blob), state)

    def persistent_load(self, reference: tuple) -> object:
        _, account, partition, name = reference
        return get_backend("s3")[account][partition].buckets.get(name)


def replace(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, also if the machine stops in the middle."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):  # a full disk needs the room
            temporary.unlink()
        raise
