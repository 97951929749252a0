"""Files that are whole or not there."""

from __future__ import annotations

import contextlib
import os
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
