"""What is installed here: Python, packages against the lock, compiler, Horovod."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

from workshop.launch.horovod import horovod_status

LOCK = Path(__file__).resolve().parents[2] / "tools" / "requirements" / "lock.txt"
PYTHONS = ((3, 11), (3, 12))
TRY_HOROVOD = "import horovod.tensorflow as hvd; hvd.init(); print(hvd.mpi_built())"
OK, WARN, FAIL = "OK", "WARN", "FAIL"


@dataclass(frozen=True)
class CheckResult:
    """level: OK, WARN (a part of the kit is missing) or FAIL (it will not work).

    finding: what is here. do: what to do about it, empty where there is nothing to do.
    """

    level: str
    finding: str
    do: str = ""


def ok(finding: str) -> CheckResult:
    return CheckResult(OK, finding)


def warn(finding: str, do: str) -> CheckResult:
    return CheckResult(WARN, finding, do)


def fail(finding: str, do: str) -> CheckResult:
    return CheckResult(FAIL, finding, do)


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


def compiler() -> CheckResult:
    """Only building Horovod needs a compiler."""
    names = [*(os.environ.get("CXX") or "").split()[:1], "g++", "c++", "clang++"]
    program = next(filter(None, map(shutil.which, names)), None)
    if program:
        version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
        return ok(version.splitlines()[0] if version else program)
    if horovod_status().available:
        return ok("none; not needed now, Horovod is built")
    return warn("none found", "sudo apt-get install g++ make (macOS: xcode-select --install)")


def horovod() -> CheckResult:
    """Start it in another process: importing TensorFlow here would be slow."""
    status = horovod_status()
    if not status.available:
        return warn(status.why, status.do)
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    # -P: no modules of the current folder
    command = [sys.executable, "-P", "-c", TRY_HOROVOD]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    except subprocess.TimeoutExpired:
        return warn(f"Horovod {status.version} does not start within 120 s", "make setup")
    if done.returncode == 0 and done.stdout.strip() == "True":
        return ok(f"Horovod {status.version} with MPI")
    error = (done.stderr.strip().splitlines() or ["no message"])[-1]
    return warn(f"Horovod {status.version} does not start: {error}", "make setup")
