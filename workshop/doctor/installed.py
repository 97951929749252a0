"""What is installed here: Python, packages against the lock, Horovod."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from packaging.requirements import Requirement

from workshop.launch.horovod import horovod_status

LOCK = Path(__file__).resolve().parents[2] / "tools" / "requirements" / "lock.txt"
PYTHONS = ((3, 11), (3, 12))
OK, WARN, FAIL = "OK", "WARN", "FAIL"


@dataclass(frozen=True)
class CheckResult:
    """level: OK, WARN (a part of the kit is missing) or FAIL (it will not work).

    finding: what is here. do: what to do about it, empty where there is nothing to do.
    """

    level: str
    finding: str
    do: str = ""


ok, warn, fail = (partial(CheckResult, level) for level in (OK, WARN, FAIL))


def python() -> CheckResult:
    version = f"{platform.python_version()} in {sys.prefix}"
    if sys.version_info[:2] in PYTHONS:
        return ok(version)
    return fail(version, "make setup PYTHON=/path/to/python3.11")


def locked(text: str) -> dict[str, str]:
    """Name -> version of every package that the lock names for this machine."""
    result = {}
    for line in text.splitlines():
        if not re.match(r"[A-Za-z0-9]", line):
            continue
        requirement = Requirement(line.rstrip(" \\"))
        if requirement.marker is None or requirement.marker.evaluate():
            result[requirement.name] = str(requirement.specifier).removeprefix("==")
    return result


def packages() -> CheckResult:
    """Compare what is installed with the lock. A local version (torch's +cpu) may differ."""
    if not LOCK.exists():
        return warn(f"{LOCK} is not there", "run the kit from its own folder")
    versions = locked(LOCK.read_text())
    wrong = []
    for name, version in versions.items():
        try:
            installed = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            wrong.append(f"{name} {version} is missing")
            continue
        if installed.split("+")[0] != version:
            wrong.append(f"{name} is {installed}, not {version}")
    if wrong:
        rest = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        return fail("; ".join(wrong[:3]) + rest, "make setup")
    return ok(f"{len(versions)}, each as locked")


def horovod() -> CheckResult:
    """The set-up has tried it, or has left the reason why it is not there."""
    status = horovod_status()
    if not status.available:
        return warn(status.why, status.do)
    return ok(f"Horovod {status.version} with MPI")
