"""Is .venv complete and up to date? A stamp answers, without starting .venv's Python."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "tools" / "requirements"
VENV = ROOT / ".venv"
STAMP = VENV / "setup.json"  # written last: a .venv without it was not finished


def key() -> str:
    """A hash of everything that a finished set-up depends on."""
    digest = hashlib.sha256()
    files = [*sorted(REQUIREMENTS.glob("*.txt")), ROOT / "pyproject.toml"]
    files += sorted((ROOT / "tools" / "setup").glob("*.py"))
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    # Scripts in .venv name its absolute path: a moved folder needs a new .venv.
    digest.update(str(VENV).encode() + b"\0")
    configuration = VENV / "pyvenv.cfg"  # names the Python, with its full version
    digest.update(configuration.read_bytes() if configuration.exists() else b"")
    return digest.hexdigest()


def outdated() -> bool:
    """True unless a finished set-up belongs to these very files."""
    if read_json(STAMP).get("key") != key() or not (VENV / "bin" / "python").exists():
        return True
    # A compiler was installed since then: Horovod can be built now.
    return horovod_state() == "no-compiler" and compiler() is not None


def compiler() -> str | None:
    """The C++ compiler that a build would use, or None."""
    words = os.environ.get("CXX", "").split()
    return next(filter(None, map(shutil.which, words[:1] or ["g++", "c++", "clang++"])), None)


def horovod_state(prefix: Path = VENV) -> str | None:
    """installed, no-compiler or failed; None before the first set-up."""
    return read_json(prefix / "horovod.json").get("state")


def read_json(path: Path) -> dict:
    """A small file's content, empty if it is missing or damaged."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def write_json(path: Path, content: dict) -> None:
    """Write a small file in one step."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(content, indent=1) + "\n")
    os.replace(partial, path)


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Lock the lock file: read access is enough, and nothing is written."""
    with open(REQUIREMENTS / "lock.txt") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another set-up of this folder is running; waiting for it.", flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
