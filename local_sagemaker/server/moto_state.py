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
import os
import pickle
import threading
import uuid
from pathlib import Path

import moto
from moto.backends import get_backend
from moto.core.base_backend import BackendDict
from moto.s3.models import FakeBucket, FakeKey


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

    def load(self) -> None:
        """Restore what an earlier process saved. Raises StateError if that cannot be."""
        buckets = self._read("s3.pickle")
        for name, accounts in (buckets or {}).items():
            self._restore(name, accounts)
        for name, accounts in (self._read("rest.pickle") or {}).items():
            self._restore(name, accounts)
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
            self.dirty.clear()

    def _write(self, name: str) -> None:
        services = [
            one
            for one in BackendDict._instances
            if (one.service_name == "s3") == (name == "s3.pickle")
        ]
        state = {
            service.service_name: {account: dict(regions) for account, regions in service.items()}
            for service in services
        }
        buffer = io.BytesIO()
        pickler = _Pickler(buffer, self.blobs, refer_to_buckets=name != "s3.pickle")
        pickler.dump(state)
        header = f"moto {moto.__version__}\n".encode()
        replace(self.directory / name, header + buffer.getvalue())

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
                return _Unpickler(stream, self.blobs).load()
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

    def _drop_unused_blobs(self) -> None:
        used = {key._value_buffer.path for key in _keys() if hasattr(key._value_buffer, "path")}
        for path in self.blobs.iterdir():
            if path not in used:
                path.unlink()


def _keys():
    for regions in get_backend("s3").values():
        for backend in regions.values():
            for bucket in backend.buckets.values():
                for _, keys in bucket.keys.iterlists():
                    yield from (key for key in keys if isinstance(key, FakeKey))


class _Pickler(pickle.Pickler):
    def __init__(self, stream: io.BytesIO, blobs: Path, refer_to_buckets: bool) -> None:
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)
        self.blobs, self.refer_to_buckets = blobs, refer_to_buckets

    def persistent_id(self, value: object) -> object:
        if self.refer_to_buckets and isinstance(value, FakeBucket):
            return ("bucket", value.account_id, value.partition, value.name)
        return None

    def reducer_override(self, value: object) -> object:
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


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream, blobs: Path) -> None:
        super().__init__(stream)
        self.blobs = blobs

    def find_class(self, module: str, name: str) -> object:
        if (module, name) == (__name__, "_restore_key"):
            return lambda blob, state: _restore_key(str(self.blobs / blob), state)
        return super().find_class(module, name)

    def persistent_load(self, reference: tuple) -> object:
        _, account, partition, name = reference
        return get_backend("s3")[account][partition].buckets.get(name)


def replace(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, also if the machine stops in the middle."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)
