"""Finds out, by trying, whether this machine can make instances of namespaces and shape links."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from local_sagemaker.cluster import linux, mounts
from local_sagemaker.cluster.spec import NAMESPACES, PROCESSES, ClusterSpec, Connectivity, Host
from local_sagemaker.cluster.supervised_processes import SupervisorProcess

PROBE_SECONDS = 20
ALLOWING = (
    "Ubuntu allows them after `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, and "
    "Docker with `--security-opt` for seccomp, apparmor and systempaths, each `=unconfined`"
)
# What a job does to a bridge's port, on a bridge that ends with the process that tries it.
TRY_SHAPING = """
import sys
from local_sagemaker.cluster import bandwidth, linux
linux.new_user_namespace(linux.CLONE_NEWNET | linux.CLONE_NEWNS)
linux.batch("ip", ["link add trial type bridge", "link add port type veth peer name eth0",
                   "link set port master trial", "link set port up"])
try:
    bandwidth.shape(["port"], bandwidth.Bandwidth(100e6, float(sys.argv[1])))
except OSError as error:
    print(error)
"""


def isolation(kind: str = "auto") -> tuple[str, str]:
    """The kind of instance to use, and why.

    kind: `auto`, `namespaces` or `processes`. Raises EmulatorError for `namespaces` where this
    machine refuses them.
    """
    if kind == PROCESSES:
        return PROCESSES, "asked for"
    reason = namespaces_unavailable_reason()
    if reason is None:
        return NAMESPACES, "this machine allows them"
    if kind == NAMESPACES:
        from local_sagemaker.emulator_error import EmulatorError  # the rest needs no packages

        raise EmulatorError(f"namespaces were asked for, but: {reason}")
    return PROCESSES, reason


def namespaces_unavailable_reason() -> str | None:
    """None if a two-instance job of namespaces runs here."""
    if sys.platform != "linux":
        return f"namespaces are a Linux feature, and this is {sys.platform}"
    if linux.system_command("ip") is None:
        return linux.missing("ip")
    for folder in mounts.TMP:  # an instance has its own, in which this Python is not
        if Path(sys.prefix).resolve().is_relative_to(folder):
            return (
                f"local-sagemaker is installed in {folder}, and each instance has a {folder} of "
                "its own; install it in a virtual environment elsewhere"
            )
    with tempfile.TemporaryDirectory(prefix="local-sagemaker-") as directory:
        reason = _try_namespaces(Path(directory))
        return reason and f"{reason}. {ALLOWING}"


def _try_namespaces(directory: Path) -> str | None:
    hosts = []
    for name in ("algo-1", "algo-2"):
        folder = directory / "jobs" / "probe" / name  # as in a state directory
        (folder / "ml").mkdir(parents=True)
        hosts.append(Host(name, str(folder), {"PATH": "/usr/bin:/bin"}))
    # The file is written into /opt/ml of each instance: it must arrive in its directory.
    command = ["/bin/sh", "-c", "hostname > /opt/ml/name 2>/dev/null || uname -n > /opt/ml/name"]
    offline = Connectivity(internet=False)
    spec = ClusterSpec("probe", NAMESPACES, hosts, command, grace_seconds=1.0, connectivity=offline)
    supervisor = SupervisorProcess(spec)
    too_long = threading.Timer(PROBE_SECONDS, supervisor.process.kill)
    too_long.start()
    supervisor.run()
    if not too_long.is_alive():
        return f"a trial pair of instances did not end within {PROBE_SECONDS} s"
    too_long.cancel()
    for host in hosts:
        written = host.path / "ml" / "name"
        if not written.exists() or written.read_text().strip() != host.name:
            return next(iter(supervisor.errors), "a trial instance failed")
    return None


def shaping_unavailable_reason(latency: bool = False) -> str | None:
    """None if links can be given a rate here (with `latency`: and a delay)."""
    if sys.platform != "linux":
        return f"links are shaped by Linux, and this is {sys.platform}"
    if linux.system_command("tc") is None:
        return linux.missing("tc")
    # -P: no modules of the current folder
    command = [sys.executable, "-P", "-c", TRY_SHAPING, "0.001" if latency else "0"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PROBE_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return f"a trial link was not made within {PROBE_SECONDS} s"
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["a trial link failed"])[-1]
    return done.stdout.strip() or None
