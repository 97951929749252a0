"""How moto's objects become bytes on disk, where pickle does not know by itself.

An S3 object's bytes are not in the pickle but in a file of their own, its blob.
"""

from __future__ import annotations

import io
import pickle
import threading
import uuid
from pathlib import Path
from typing import get_args

from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)
from moto.backends import get_backend
from moto.s3.models import FakeBucket, FakeKey
from moto.s3.utils import _VersionedKeyStore

from local_sagemaker.server.files import replace

LOCKS = (type(threading.Lock()), type(threading.RLock()))
PRIVATE_KEYS = get_args(PrivateKeyTypes)


class BlobBuffer:
    """What moto takes for an object's buffer: a file that is open only while it is read."""

    def __init__(self, path: Path) -> None:
        self.path, self.position, self.closed = path, 0, False

    def seek(self, position: int) -> None:
        self.position = position

    def read(self, size: int = -1) -> bytes:
        with self.path.open("rb") as stream:
            stream.seek(self.position)
            data = stream.read(size)
        self.position += len(data)
        return data

    def close(self) -> None:
        """Nothing is open; but moto has no more use for these bytes."""
        self.closed = True

    def truncate(self) -> None:
        raise io.UnsupportedOperation("an object's bytes are never changed in place")


class StatePickler(pickle.Pickler):
    def __init__(self, stream: io.BytesIO, blobs: Path, refer_to_buckets: bool) -> None:
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)
        self.blobs, self.refer_to_buckets = blobs, refer_to_buckets
        self.used: set[str] = set()  # names of the blobs that the pickle refers to

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
        if isinstance(value, _VersionedKeyStore):  # as a dict it shows its newest versions only
            return _restore_versions, (list(value.lists()),)
        if not isinstance(value, FakeKey):
            return NotImplemented
        if value._value_buffer.closed:  # the parts of an upload that is complete, for example
            return _restore_key, ("", _state(value))
        if not isinstance(value._value_buffer, BlobBuffer):
            path = self.blobs / uuid.uuid4().hex
            replace(path, value.value)
            value._value_buffer.close()
            value._value_buffer = BlobBuffer(path)
        self.used.add(value._value_buffer.path.name)
        return _restore_key, (value._value_buffer.path.name, _state(value))


def _state(key: FakeKey) -> dict:
    return {k: v for k, v in key.__dict__.items() if k not in ("_value_buffer", "lock")}


def _restore_key(blob: str, state: dict) -> FakeKey:
    key = FakeKey.__new__(FakeKey)
    key.__dict__.update(state)
    key.lock = threading.Lock()
    key._value_buffer = BlobBuffer(Path(blob))  # the unpickler knows the directory
    if not blob:
        key._value_buffer.close()
    return key


def _restore_versions(lists: list[tuple[str, list]]) -> _VersionedKeyStore:
    store = _VersionedKeyStore()
    for key, versions in lists:
        dict.__setitem__(store, key, versions)
    return store


def _restore_private_key(der: bytes) -> PrivateKeyTypes:
    return load_der_private_key(der, None)


class StateUnpickler(pickle.Unpickler):
    def __init__(self, stream, blobs: Path) -> None:
        super().__init__(stream)
        self.blobs, self.used = blobs, set()

    def find_class(self, module: str, name: str) -> object:
        if (module, name) == (__name__, "_restore_key"):
            return self._key
        return super().find_class(module, name)

    def _key(self, blob: str, state: dict) -> FakeKey:
        if not blob:
            return _restore_key(blob, state)
        self.used.add(blob)
        return _restore_key(str(self.blobs / blob), state)

    def persistent_load(self, reference: tuple) -> object:
        _, account, partition, name = reference
        return get_backend("s3")[account][partition].buckets.get(name)
