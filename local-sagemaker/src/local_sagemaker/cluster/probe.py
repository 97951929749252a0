"""Finds out, by trying, whether this machine can make instances of namespaces and shape links."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from local_sagemaker.cluster import linux
from local_sagemaker.cluster.spec import NAMESPACES, PROCESSES, ClusterSpec, Host

PROBE_SECONDS = 20
# What a job does to a bridge's port, on a bridge that ends with the process that tries it.
_TRY_LINKS = """
import sys
from local_sagemaker.cluster import linux, shaping
from local_sagemaker.cluster.bandwidth import Links
linux.new_user_namespace(linux.CLONE_NEWNET | linux.CLONE_NEWNS)
linux.ip_batch(["link add trial type bridge", "link add port type veth peer name eth0",
                "link set port master trial", "link set port up"])
print(shaping.refused("port", Links(float(sys.argv[1]), float(sys.argv[2]))) or "")
"""


def isolation(wanted: str = "auto") -> tuple[str, str]:
    """The kind of instance to use, and why.

    wanted: `auto`, `namespaces` or `processes`. Raises OSError when `namespaces` is
    wanted and this machine refuses.
    """
    if wanted == PROCESSES:
        return PROCESSES, "asked for"
    reason = _why_not()
    if reason is None:
        return NAMESPACES, "this machine allows them"
    if wanted == NAMESPACES:
        raise OSError(f"namespaces were asked for, but: {reason}")
    return PROCESSES, reason


def _why_not() -> str | None:
    """None if a two-instance job of namespaces runs here, else the reason in words."""
    if sys.platform != "linux":
        return f"namespaces are a Linux feature, and this is {sys.platform}"
    if linux.system_command("ip") is None:
        return linux.missing("ip")
    with tempfile.TemporaryDirectory(prefix="local-sagemaker-") as directory:
        return _try(Path(directory))


def _try(directory: Path) -> str | None:
    hosts = []
    for name in ("algo-1", "algo-2"):
        folder = directory / "jobs" / "probe" / name  # as in a state directory
        (folder / "ml").mkdir(parents=True)
        hosts.append(Host(name, str(folder), {"PATH": "/usr/bin:/bin"}))
    # The file is written into /opt/ml of each instance: it must arrive in its directory.
    command = ["/bin/sh", "-c", "hostname > /opt/ml/name 2>/dev/null || uname -n > /opt/ml/name"]
    spec = ClusterSpec("probe", NAMESPACES, hosts, command, 9, 1.0, sys.prefix, proxy=False)
    spec.write(directory / "spec.json")
    # -P: no modules of the current folder
    command = [sys.executable, "-P", "-m", "local_sagemaker.cluster.supervisor"]
    supervisor = subprocess.Popen(
        [*command, str(directory / "spec.json")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        supervisor.wait(PROBE_SECONDS)
    except subprocess.TimeoutExpired:
        return f"a trial pair of instances did not end within {PROBE_SECONDS} s"
    finally:
        supervisor.kill()
        events, errors = supervisor.communicate()
    for host in hosts:
        written = host.path / "ml" / "name"
        if not written.exists() or written.read_text().strip() != host.name:
            return _reason(events) or errors.strip() or "a trial instance failed"
    return None


def _reason(events: str) -> str | None:
    for line in events.splitlines():
        event = json.loads(line)
        if event["event"] == "error":
            return event["message"]
    return None


def why_no_shaping(latency: bool = False) -> str | None:
    """None if links can be given a rate here (with `latency`: and a delay), else the reason."""
    if sys.platform != "linux":
        return f"links are shaped by Linux, and this is {sys.platform}"
    if linux.system_command("tc") is None:
        return linux.missing("tc")
    # -P: no modules of the current folder
    command = [sys.executable, "-P", "-c", _TRY_LINKS, "100e6", "0.001" if latency else "0"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PROBE_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return f"a trial link was not made within {PROBE_SECONDS} s"
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["a trial link failed"])[-1]
    return done.stdout.strip() or None
