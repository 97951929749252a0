"""mpirun, and what instances are made of: namespaces, a bridge, shaped links."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from local_sagemaker.cluster.linux import system_command
from local_sagemaker.cluster.probe import isolation, why_no_shaping
from local_sagemaker.cluster.spec import NAMESPACES
from workshop.doctor.result import Check, fail, ok, warn

SECONDS = 60
WITHOUT = "jobs run as plain processes: no own addresses, no shaped links"
RANKS = "from mpi4py import MPI; w = MPI.COMM_WORLD; print(w.allreduce(1), flush=True)"


def mpirun() -> Check:
    """Start two ranks that add up a number each."""
    program = Path(sys.executable).parent / "mpirun"
    if not program.exists():
        return fail("no mpirun beside this Python", "make setup")
    command = [str(program), "-np", "2", "--oversubscribe", sys.executable, "-c", RANKS]
    # mpirun refuses root unless told twice; a container often has no other user.
    environment = {
        **os.environ,
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    done = run(command, environment)
    if done.returncode == 0 and done.stdout.split() == ["2", "2"]:
        return ok("two ranks added their numbers")
    said = (done.stderr or done.stdout).strip().splitlines()
    return fail(f"two ranks did not work: {' / '.join(said[:3])}", "make setup; see README")


def iproute2() -> Check:
    missing = [name for name in ("ip", "tc") if system_command(name) is None]
    if not missing:
        return ok("ip and tc")
    do = "sudo apt-get install iproute2 (or your system's package of that name)"
    return warn(f"{' and '.join(missing)} not found; {WITHOUT}", do)


def namespaces() -> Check:
    """Start a trial pair of instances, as a job would."""
    kind, reason = isolation()
    if kind == NAMESPACES:
        return ok("two trial instances started, each with its own host name, network and files")
    return warn(f"{reason}; {WITHOUT}", how_to_allow_namespaces())


def how_to_allow_namespaces() -> str:
    """The setting of this kernel that forbids them to ordinary users, where one is known."""
    for name, forbidding, allowing in (
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("user/max_user_namespaces", "0", "10000"),
    ):
        path = Path("/proc/sys") / name
        if path.exists() and path.read_text().strip() == forbidding:
            return f"sudo sysctl {name.replace('/', '.')}={allowing}"
    if sys.platform != "linux":
        return "nothing: this system has none"
    return "in Docker: docker run --security-opt seccomp=unconfined; else go on without"


def tbf() -> Check:
    """Limit a link's bandwidth, as a job would."""
    return _shaping("tbf", why_no_shaping(), "bandwidth of links can be set: workshop links")


def netem() -> Check:
    """Delay a link's packets, as a job would."""
    return _shaping("netem", why_no_shaping(latency=True), "latency of links can be set")


def _shaping(module: str, why: str | None, meaning: str) -> Check:
    if why is None:
        return ok(meaning)
    if system_command("tc") is None:
        return warn("no tc here", "see iproute2 above")
    do = f"a kernel with sch_{module} (sudo modprobe sch_{module}); jobs' logs say what they lack"
    return warn(f"{module}: {why}", do)


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
