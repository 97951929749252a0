"""What this machine must have and has: one check a need."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import psutil

import local_sagemaker
from workshop.doctor import installed
from workshop.doctor.installed import OK, WARN, CheckResult, fail, ok, warn

GB = 1e9
DISK_LOW, DISK_NEEDED = 3 * GB, 0.5 * GB
# A training process with TensorFlow takes about 0.6 GB; two instances run up to four.
MEMORY_LOW, MEMORY_NEEDED = 4 * GB, 1.5 * GB
SECONDS = 60
PORT = f"port {local_sagemaker.DEFAULT_PORT}"
RANKS = "from mpi4py import MPI; w = MPI.COMM_WORLD; print(w.allreduce(1), flush=True)"


def all_checks() -> list[tuple[str, Callable[[], CheckResult]]]:
    """(name, check), in the order of display."""
    results = cache(emulator_results)  # it tries all at once
    return [
        ("Python", installed.python),
        ("packages", installed.packages),
        ("Horovod", installed.horovod),
        ("mpirun", mpirun),
        ("namespaces", lambda: results()["namespaces"]),
        ("tc tbf", lambda: results()["tc tbf"]),
        ("tc netem", lambda: results()["tc netem"]),
        ("disk", disk),
        ("memory", memory),
        ("cores", cores),
        ("AWS CLI", aws_cli),
        (PORT, lambda: results()[PORT]),
    ]


def examine() -> Iterator[tuple[str, CheckResult]]:
    """Run every check. A check that raises is a FAIL with its error."""
    for name, check in all_checks():
        try:
            yield name, check()
        except local_sagemaker.EmulatorError as error:  # of its state directory
            yield name, fail(str(error), "see docs/troubleshooting.md")
        except Exception as error:
            yield name, fail(f"the check itself broke: {error!r}", "report this as a bug")


def mpirun() -> CheckResult:
    """Start two ranks that add up their numbers."""
    program = Path(sys.executable).parent / "mpirun"
    if not program.exists():
        return fail("no mpirun beside this Python", "make setup")
    # -P: no modules of the current folder
    command = [str(program), "-np", "2", "--oversubscribe", sys.executable, "-P", "-c", RANKS]
    # mpirun refuses root unless told twice; a container often has no other user.
    environment = {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    done = run(command, environment)
    if done.returncode == 0 and done.stdout.split() == ["2", "2"]:
        return ok("two ranks added their numbers")
    lines = (done.stderr or done.stdout).strip().splitlines()
    return fail(
        f"two ranks did not work: {' / '.join(lines[:3])}",
        "make setup; see docs/troubleshooting.md",
    )


def emulator_results() -> dict[str, CheckResult]:
    """What `local-sagemaker doctor` finds; without it jobs run, as well as they can."""
    return {
        name: CheckResult(WARN if do else OK, here, do)
        for name, here, do in local_sagemaker.doctor_findings()
    }


def run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess:
    """Run a command to its end or SECONDS; one that hangs counts as failed."""
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"no end within {SECONDS} s")
    except OSError as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))


def disk() -> CheckResult:
    """The least free space among the current, the home and the temporary directory."""
    try:
        places = {Path.cwd(), Path.home(), Path(tempfile.gettempdir())}
    except FileNotFoundError:
        return fail(
            "no folder for temporary files can be written",
            "name one in the variable TMPDIR: export TMPDIR=$HOME/tmp",
        )
    free, place = min((shutil.disk_usage(p).free, str(p)) for p in places if p.exists())
    space = f"{free / GB:.1f} GB free in {place}"
    if free < DISK_NEEDED:
        return fail(space, "free at least 3 GB")
    return warn(space, "3 GB or more is comfortable") if free < DISK_LOW else ok(space)


def memory() -> CheckResult:
    available = psutil.virtual_memory().available
    size = f"{available / GB:.1f} GB available"
    if available < MEMORY_NEEDED:
        return fail(size, "close programs: a two-instance job needs 1.5 GB, four ranks 4 GB")
    if available < MEMORY_LOW:
        return warn(size, "enough for two processes; close programs before you run four")
    return ok(size)


def cores() -> CheckResult:
    """Cores available to this process; a container can limit them."""
    known = hasattr(os, "sched_getaffinity")
    count = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    if count < 2:
        return warn("1 core", "all runs, but no speed-up can be seen: two ranks share it")
    return ok(f"{count} cores")


def aws_cli() -> CheckResult:
    """Whether the `aws` of the shell, if there is one, reaches the emulator."""
    if (program := shutil.which("aws")) is None:
        return ok("not installed; nothing here needs it")
    output = run([program, "--version"], dict(os.environ)).stdout
    match = re.search(r"aws-cli/(\d+)\.(\d+)", output)
    version = tuple(map(int, match.groups())) if match else (0, 0)
    if version >= (2, 13) or (1, 29) <= version < (2,):
        return ok(output.split()[0])
    name = output.split()[0] if output else "of no known version"
    return warn(
        f"{program} is {name}: before 2.13 (1.29) it ignores AWS_ENDPOINT_URL and calls AWS itself",
        'give it --endpoint-url "$AWS_ENDPOINT_URL" to reach the emulator, or install a newer one',
    )
