"""Keeps moto's state on disk, so that a restart (or a kill -9) loses nothing.

moto holds everything in memory. After each request that changes something, it is written here
before the client gets its answer:

    moto.pickle      stacks, roles, networks, buckets, models: everything small
    journal.sqlite   log lines and metric values (logs.py)
    objects/         S3's objects (local_sagemaker/s3)

The pickle holds classes of moto's, so it belongs to one version of it; the version is in the
file, and a state of another version is refused with an error message. It is
loaded from a directory that belongs to this user alone and that jobs on instances cannot see.
"""

from __future__ import annotations

import io
import logging
import pickle
import sqlite3
import threading
from pathlib import Path
from typing import Any, get_args

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

from local_sagemaker.emulator_error import EmulatorError
from local_sagemaker.moto_backend import buckets, logs
from local_sagemaker.moto_backend.patch import check_version
from local_sagemaker.s3.store import ObjectStore
from local_sagemaker.storage.files import full_disk_as_os_error, replace

LOG = logging.getLogger(__name__)
VERSION = f"local_sagemaker 5, moto {moto.__version__}"
AFRESH = "Start afresh with `local-sagemaker stop --forget`."
LOCKS = (type(threading.Lock()), type(threading.RLock()))
PRIVATE_KEYS = get_args(PrivateKeyTypes)


class MotoState:
    """moto's backends, in memory and in `directory`. objects: S3's."""

    def __init__(self, directory: Path) -> None:
        """Raises EmulatorError for a directory that another release wrote, or a damaged one, and
        for another version of moto."""
        check_version()
        self.directory, self.path = directory, directory / "moto.pickle"
        directory.mkdir(parents=True, exist_ok=True)
        try:
            with full_disk_as_os_error():
                logs.open_journal(directory / "journal.sqlite")
            self.objects = ObjectStore(directory / "objects")
        except sqlite3.DatabaseError as error:
            raise EmulatorError(f"{directory / 'journal.sqlite'}: {error}. {AFRESH}") from error
        buckets.use(self.objects)
        self.lock = threading.RLock()  # held by each request of moto's, and by save
        self.not_picklable: set[str] = set()  # services, which are not saved

    def load(self) -> None:
        """Restore what an earlier process saved. Raises EmulatorError if that cannot be."""
        self._restore()
        logs.forget_deleted_streams()

    def save(self) -> None:
        """Write everything. Where that fails, OSError: nothing changed."""
        with self.lock:
            try:
                self._write()
            except OSError:
                self._restore()
                raise

    def _restore(self) -> None:
        """Make memory what is on disk."""
        saved = self._read()
        for service in _services():
            for account, regions in list(service.items()):
                known = saved.get(service.service_name, {}).get(account, {})
                for region in set(regions) - set(known):
                    if service.service_name not in self.not_picklable:
                        del regions[region]
        for name, accounts in saved.items():
            for account, regions in accounts.items():
                for region, backend in regions.items():
                    get_backend(name)[account][region] = backend
        buckets.restore_owners()

    def _write(self) -> None:
        services = [s for s in _services() if s.service_name not in self.not_picklable]
        try:
            data = self._dump(services)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            if not (culprits := self._not_picklable(services)):
                raise
            # Better to forget one service at the end than to refuse every request from now on.
            self.not_picklable |= culprits
            LOG.error("%s will not outlive this process: %s", ", ".join(culprits), error)
            return self._write()
        replace(self.path, f"{VERSION}\n".encode() + data)

    def _dump(self, services: list[BackendDict]) -> bytes:
        state = {
            service.service_name: {
                account: dict(regions) for account, regions in list(service.items())
            }
            for service in services
        }
        buffer = io.BytesIO()
        StatePickler(buffer).dump(state)
        return buffer.getvalue()

    def _not_picklable(self, services: list[BackendDict]) -> set[str]:
        names = set()
        for service in services:
            try:
                self._dump([service])
            except (TypeError, AttributeError, pickle.PicklingError):
                names.add(service.service_name)
        return names

    def _read(self) -> dict:
        if not self.path.exists():
            return {}
        with self.path.open("rb") as stream:
            version = stream.readline().decode("utf-8", "replace").strip()
            if version != VERSION:
                raise EmulatorError(
                    f"{self.path} was written by {version or 'something else'}, and this is "
                    f"{VERSION}. {AFRESH}"
                )
            try:
                return pickle.load(stream)
            except Exception as error:
                raise EmulatorError(
                    f"{self.path} cannot be read ({type(error).__name__}: {error}). {AFRESH}"
                ) from error


def _services() -> list[BackendDict]:
    """moto's services of which something was used."""
    return list(BackendDict._instances)  # type: ignore[misc]


class StatePickler(pickle.Pickler):
    """pickle, which does not know by itself what becomes of a lock or of a private key."""

    def __init__(self, stream) -> None:
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)

    def reducer_override(self, value: object) -> Any:
        if isinstance(value, LOCKS):
            return threading.RLock if isinstance(value, LOCKS[1]) else threading.Lock, ()
        if isinstance(value, PRIVATE_KEYS):  # KMS
            der = value.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
            return _restore_private_key, (der,)
        return NotImplemented


def _restore_private_key(der: bytes) -> PrivateKeyTypes:
    return load_der_private_key(der, None)
