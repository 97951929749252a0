"""Atomic writes, safe reads and removals. Standard library only."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path


def replace(path: Path, data: bytes) -> None:
    """Write a file atomically, also if the machine stops in the middle."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):  # a full disk needs the space
            temporary.unlink()
        raise


@contextlib.contextmanager
def full_disk_as_os_error() -> Iterator[None]:
    """Raise what SQLite says where the disk is full as the system says it: as an OSError."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (
            sqlite3.SQLITE_IOERR,
            sqlite3.SQLITE_FULL,
        ):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise


def open_below(root: Path, path: Path, seen_as: str = "/opt/ml") -> int:
    """A descriptor to read a file below `root`, where a hostile program wrote, and may go on to.

    A link is followed within `root` only. seen_as: where that program saw `root`.
    Raises OSError for a link that leads out, and for what is no regular file.
    """
    if os.path.islink(path) and (target := os.readlink(path)).startswith(f"{seen_as}/"):
        path = root / target.removeprefix(f"{seen_as}/")
    *folders, name = os.path.relpath(os.path.realpath(path), os.path.realpath(root)).split(os.sep)
    if os.pardir in (*folders, name):
        raise OSError(errno.ELOOP, f"it leads out of {seen_as}")
    # No part of this path is a link. One that is has just been put there.
    parent = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
            os.close(parent)
            parent = inner
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
    finally:
        os.close(parent)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a file")
    return descriptor


def open_up(folder: Path, mode: str = "u+rX") -> None:
    """Let this user read a folder and all that is in it.

    The command goes as deep as folders go, and follows links of its arguments only.
    """
    if not folder.is_symlink():
        subprocess.run(["chmod", "-R", mode, "--", folder], stderr=subprocess.DEVNULL)


def remove(folder: Path) -> None:
    """Remove a directory, with what an overlay or a script left unreadable in it."""
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):
        open_up(folder, "u+rwX")
        subprocess.run(["rm", "-rf", "--", folder])  # what it cannot remove, it says in our log
