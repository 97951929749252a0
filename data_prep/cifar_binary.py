"""Read CIFAR-10's binary archive without unpacking it to disk.

Each of its six files is a row of records: one label byte, then 3,072 pixel bytes: the
red plane of 32 x 32, the green, the blue (channels first, CHW).
"""

from __future__ import annotations

import gzip
import hashlib
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import IO

import numpy as np

from data_prep.errors import DataError

SIDE, COLOURS, CLASSES = 32, 3, 10
RECORD_BYTES = 1 + COLOURS * SIDE * SIDE
TRAIN_FILES = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST_FILE = "test_batch.bin"
FILES = (*TRAIN_FILES, TEST_FILE)
MAX_FILE_BYTES = 10_000 * RECORD_BYTES
# Six files of 30.73 MB, a few small ones, tar headers: more than this is not CIFAR-10.
MAX_UNPACKED = 200_000_000


def decode(data: bytes, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Turn one file's bytes into uint8 (n, 32, 32, 3) pixels (HWC) and int64 (n,) labels.

    Raises DataError when the length or a label is impossible.
    """
    if not data or len(data) % RECORD_BYTES:
        raise DataError(
            f"{name} has {len(data):,} bytes, expected a multiple of {RECORD_BYTES:,}: "
            "it is cut short or no CIFAR-10 file"
        )
    records = np.frombuffer(data, np.uint8).reshape(-1, RECORD_BYTES)
    labels = records[:, 0].astype(np.int64)
    if labels.max() >= CLASSES:
        raise DataError(f"{name} holds the label {labels.max()}, expected 0 to 9")
    # The bytes are three planes: first take them as such, then move the colours last.
    # Reshaping to (n, 32, 32, 3) at once keeps every value and scrambles every picture.
    planes = records[:, 1:].reshape(-1, COLOURS, SIDE, SIDE)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels


def read_archive(path: Path) -> dict[str, bytes]:
    """Return file name -> content of the six files in a .tar.gz.

    Nothing is written to disk, so no path inside the archive can lead anywhere; links and
    other members are passed over; sizes are bounded. Raises DataError when the archive is
    damaged, lacks a file, holds one twice, or unpacks to too much.
    """
    found: dict[str, bytes] = {}
    try:
        with gzip.open(path) as unpacked:
            bounded = _Bounded(unpacked, MAX_UNPACKED, path.name)
            # "r|": one pass, no seeking, so `bounded` sees every byte.
            with tarfile.open(fileobj=bounded, mode="r|") as archive:  # type: ignore[call-overload]
                for member in archive:
                    name = PurePosixPath(member.name).name
                    if name in FILES and member.isreg():
                        _take(archive, member, name, found)
            # To the very end: only there does gzip compare its own checksum.
            while bounded.read(1 << 20):
                pass
    except (EOFError, tarfile.TarError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path.name} is damaged or cut short ({error})") from error
    _complain_if_lacking(found, path)
    return found


def read_folder(folder: Path) -> dict[str, bytes]:
    """Return file name -> content of the six unpacked files in `folder`."""
    found = {}
    for name in FILES:
        path = folder / name
        if path.is_file():
            if path.stat().st_size > MAX_FILE_BYTES:
                raise DataError(f"{path} is larger than the {MAX_FILE_BYTES:,} bytes expected")
            found[name] = path.read_bytes()
    _complain_if_lacking(found, folder)
    return found


def check_contents(contents: Mapping[str, bytes], sums: Mapping[str, str]) -> None:
    """Compare each file's SHA-256 with `sums`; raise DataError at the first difference."""
    for name in FILES:
        found = hashlib.sha256(contents[name]).hexdigest()
        if found != sums[name]:
            raise DataError(f"wrong content: {name} has SHA-256 {found}, expected {sums[name]}")


def _take(
    archive: tarfile.TarFile, member: tarfile.TarInfo, name: str, found: dict[str, bytes]
) -> None:
    if name in found:
        raise DataError(f"the archive holds {name} twice")
    if member.size > MAX_FILE_BYTES:
        raise DataError(
            f"{name} in the archive has {member.size:,} bytes, expected {MAX_FILE_BYTES:,}"
        )
    file = archive.extractfile(member)
    found[name] = file.read() if file else b""
    if len(found[name]) != member.size:
        raise DataError(f"{name} in the archive is cut short")


def _complain_if_lacking(found: Mapping[str, bytes], place: Path) -> None:
    lacking = [name for name in FILES if name not in found]
    if lacking:
        raise DataError(f"{place.name} lacks {', '.join(lacking)}")


class _Bounded:
    """A reader that stops an archive which unpacks to far more than it should."""

    def __init__(self, file: IO[bytes], limit: int, name: str) -> None:
        self._file, self._left, self._name, self._limit = file, limit, name, limit

    def read(self, size: int) -> bytes:
        block = self._file.read(min(size, self._left + 1))
        self._left -= len(block)
        if self._left < 0:
            raise DataError(f"{self._name} unpacks to more than {self._limit:,} bytes")
        return block
