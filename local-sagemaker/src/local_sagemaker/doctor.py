"""`local-sagemaker doctor`: what this machine allows jobs, found out by trying."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator

from local_sagemaker import credentials, daemon
from local_sagemaker.cluster import probe
from local_sagemaker.cluster.spec import NAMESPACES

ADDRESS = ("127.0.0.1", daemon.DEFAULT_PORT)
FRAMEWORKS = ("torch", "tensorflow", "horovod", "mpi4py", "sagemaker")
LAUNCHERS = {
    "torchrun": "torch_distributed needs it: pip install torch",
    "mpirun": "mpi and smdistributed need it: install Open MPI 5",
}


def findings() -> Iterator[tuple[str, str, str]]:
    """(what was looked for, what is here, what to do; empty if nothing).

    Raises EmulatorError at the end for a state directory that cannot be used.
    """
    kind, reason = probe.isolation()
    here = "a trial pair of instances ran" if kind == NAMESPACES else "jobs run as plain processes"
    yield "namespaces", here, "" if kind == NAMESPACES else reason
    for module, quantity in (("tbf", "bandwidth"), ("netem", "latency")):
        lacking = probe.shaping_unavailable_reason(latency=module == "netem")
        here = f"links can{'not' if lacking else ''} be given a {quantity}"
        yield f"tc {module}", here, f"{lacking}; try: sudo modprobe sch_{module}" if lacking else ""
    for name, need in LAUNCHERS.items():
        path = os.pathsep.join([f"{sys.prefix}/bin", os.environ.get("PATH", os.defpath)])
        place = shutil.which(name, path=path)
        yield name, place or "not found", "" if place else need
    if aws := shutil.which("aws"):
        text = subprocess.run([aws, "--version"], capture_output=True, text=True).stdout
        version = [int(digits) for digits in re.findall(r"\d+", text)[:2]]
        old = version < [1, 29] or [2] <= version < [2, 13]
        to_do = "it ignores AWS_ENDPOINT_URL and calls AWS: install 1.29, 2.13 or newer"
        yield "aws", text.partition(" ")[0], to_do if old else ""
    known = {row.name: row.version for row in importlib.metadata.distributions()}
    versions = [f"{name} {known[name]}" for name in FRAMEWORKS if name in known]
    to_do = "" if versions else "pip install what your jobs import into this environment"
    yield "packages", ", ".join(versions) or f"no framework in {sys.prefix}", to_do
    state = daemon.state_directory()
    with socket.socket() as probing:
        taken = not (running := daemon.running(state)) and probing.connect_ex(ADDRESS) == 0
    here = f"the emulator is up: {running.url}" if running else "in use" if taken else "free"
    to_do = "local-sagemaker start --port 0 takes a free one" if taken else ""
    yield f"port {ADDRESS[1]}", here, to_do
    with credentials.state_errors(state):
        credentials.make_private(state)
        yield "state", f"{state}, {shutil.disk_usage(state).free / 1e9:.1f} GB free", ""
