"""Is .venv complete and up to date? Answered from a stamp, without starting .venv's Python."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from contextlib import contextmanager
from pathlib import Path

from tools.setup.shell import say

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
STAMP = VENV / "setup.json"
UNFINISHED = VENV / "setup-unfinished"
HOROVOD_STATE = VENV / "horovod.json"


def key() -> str:
    """A hash of everything that a finished set-up depends on."""
    digest = hashlib.sha256()
    files = [*sorted((ROOT / "tools" / "requirements").glob("*.txt")), ROOT / "pyproject.toml"]
    files += sorted((ROOT / "tools" / "setup").glob("*.py"))
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    # Scripts in .venv name its absolute path: a moved folder needs a new .venv.
    digest.update(str(VENV).encode() + b"\0")
    # Which Python the environment was made from, with its full version.
    configuration = VENV / "pyvenv.cfg"
    digest.update(configuration.read_bytes() if configuration.exists() else b"")
    return digest.hexdigest()


def compiler() -> str | None:
    """The C++ compiler that mpicxx and the build would use, or None."""
    asked = os.environ.get("CXX")
    names = [asked.split()[0]] if asked and asked.split() else ["g++", "c++", "clang++"]
    return next((path for path in map(shutil.which, names) if path), None)


def horovod_state(folder: Path = VENV) -> str | None:
    """installed, no-compiler or failed; None before the first set-up."""
    try:
        return json.loads((folder / HOROVOD_STATE.name).read_text())["state"]
    except (OSError, ValueError, KeyError):
        return None


def up_to_date() -> bool:
    """True where a finished set-up belongs to these very files."""
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return False
    if UNFINISHED.exists() or stamp.get("key") != key():
        return False
    if not (VENV / "bin" / "python").exists():
        return False
    # A compiler installed since then: Horovod can be built now.
    return not (horovod_state() == "no-compiler" and compiler())


def write_json(path: Path, content: dict) -> None:
    """Write a small file in one step."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(content, indent=1) + "\n")
    os.replace(partial, path)


@contextmanager
def one_at_a_time():
    """Hold a lock on the lock file itself: reading it is enough, nothing is written."""
    with open(ROOT / "tools" / "requirements" / "lock.txt") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another set-up of this folder is running; waiting for it.")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
