"""Build a directory beside its final place, then move it there in one step."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from data_prep.errors import DataError


@contextmanager
def building(out: Path) -> Iterator[Path]:
    """Give a temporary sibling of `out`; on success it becomes `out`, else it vanishes.

    Ctrl-C counts as failure. An earlier `out` stays untouched until the new one is whole.
    Raises DataError when the place cannot be written.
    """
    out = out.absolute()
    with _writable(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary, lock = _create(out)
    try:
        with _writable(out):
            yield temporary
            _swap(temporary, out)
    finally:
        os.close(lock)
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _writable(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"could not write {out}: {error.strerror or error}. "
            "Choose a place that you may write to, with enough free space: "
            '--out FOLDER (out="FOLDER" in Python).'
        ) from error


def _create(out: Path) -> tuple[Path, int]:
    """Make the temporary directory, hold a lock on it, sweep what killed runs left."""
    prefix = f".{out.name}.building-"
    with _locked(out.parent):
        for old in out.parent.glob(prefix + "*"):
            _remove_if_abandoned(old)
        temporary = Path(tempfile.mkdtemp(prefix=prefix, dir=out.parent))
        lock = os.open(temporary, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
    # mkdtemp makes it private; the result should be as readable as any other directory.
    umask = os.umask(0)
    os.umask(umask)
    temporary.chmod(0o777 & ~umask)
    return temporary, lock


def _remove_if_abandoned(directory: Path) -> None:
    """Remove a temporary directory whose builder is gone: nobody holds its lock."""
    try:
        handle = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return
    else:
        shutil.rmtree(directory, ignore_errors=True)
    finally:
        os.close(handle)


def _swap(temporary: Path, out: Path) -> None:
    """Put `temporary` in the place of `out`; on failure the old `out` comes back."""
    with _locked(out.parent):
        if not out.exists():
            temporary.rename(out)
            return
        aside = Path(tempfile.mkdtemp(prefix=f".{out.name}.building-", dir=out.parent))
        try:
            out.rename(aside / "old")
            try:
                temporary.rename(out)
            except BaseException:
                (aside / "old").rename(out)
                raise
        finally:
            shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold a lock on the directory itself: no lock file stays behind."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
