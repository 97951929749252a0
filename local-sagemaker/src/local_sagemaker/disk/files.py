"""Files that are whole or not there, and directories that are gone. Standard library only."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from pathlib import Path


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


def no_room(error: BaseException) -> OSError | None:
    """What SQLite says where the disk is full, as the system says it; None for other errors."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in (10, 13):  # SQLITE_IOERR, SQLITE_FULL
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return None


def remove(folder: Path) -> None:
    """Remove a directory, with what an overlay or a script left unreadable in it."""

    def open_up(function, path, _) -> None:
        with contextlib.suppress(OSError):
            for one in (os.path.dirname(path), path):
                os.chmod(one, 0o700)
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)

    shutil.rmtree(folder, onerror=open_up)


def empty(folder: Path, but: str) -> None:
    """Remove everything in a directory but the file of this name."""
    for path in folder.iterdir():
        if path.is_dir():
            remove(path)
        elif path.name != but:
            path.unlink(missing_ok=True)
