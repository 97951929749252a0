"""What the tests of links share: jobs on narrow links, and what a host looks like beside them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
from emulator_harness import SCRIPTS, command_request, until

from local_sagemaker.cluster import linux
from local_sagemaker.pytest_plugin import TrainingJob
from local_sagemaker.training.connectivity import BANDWIDTH


def host_network() -> dict[str, str]:
    """The host's interfaces, named namespaces and queueing disciplines, as text."""
    return {
        "interfaces": " ".join(sorted(os.listdir("/sys/class/net"))),
        "namespaces": _output_of("ip", "netns"),
        "disciplines": _output_of("tc", "qdisc", "show"),
        "mounts": Path("/proc/self/mounts").read_text(),
    }


def _output_of(name: str, *arguments: str) -> str:
    program = linux.system_command(name)
    if program is None:  # and what is not installed has left nothing
        return ""
    command = [program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def namespaces_of(job: str) -> dict[str, float]:
    """The network namespaces of a job, "net:[4026532281]": each instance's, and its bridge's.

    Each with the time at which it was seen. Empty until every process of the job that its
    instances run is there.
    """
    namespaces, running = set(), 0
    for process in _supervised(job):
        try:
            running += process.environ().get("TRAINING_JOB_NAME") == job
            namespaces.add(os.readlink(f"/proc/{process.pid}/ns/net"))
        except (psutil.Error, OSError):
            continue
    namespaces -= {os.readlink("/proc/self/ns/net")}
    return dict.fromkeys(namespaces, time.time()) if running >= 2 else {}


def _supervised(job: str) -> list[psutil.Process]:
    """Everything that the job's supervisor started, and what that started."""
    for process in psutil.process_iter():
        try:
            if "local_sagemaker.cluster.supervisor" in process.cmdline():
                children = process.children(recursive=True)
                if any(_job_of(child) == job for child in children):
                    return children
        except psutil.Error:
            continue
    return []


def _job_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("TRAINING_JOB_NAME")
    except (psutil.Error, OSError):
        return None


def until_namespaces_are_gone(known: dict[str, float], seconds: float = 30) -> None:
    """Fail the test if a process is in one of these namespaces after `seconds`."""
    until(lambda: not _still_there(known), seconds, lambda: _still_there(known))


def _still_there(known: dict[str, float]) -> set[str]:
    """Those with a process that is older than the time at which they were seen.

    The kernel gives the number of a namespace that is gone to another job's: its processes are
    younger.
    """
    names = set()
    for process in psutil.process_iter():
        try:
            name = os.readlink(f"/proc/{process.pid}/ns/net")
            if process.create_time() < known.get(name, 0):
                names.add(name)
        except (psutil.Error, OSError):  # it has ended
            continue
    return names


def started(emulator, name: str, words: str | None, command: list[str], **changes) -> str:
    """Create a job that runs `command` on narrow links, without the toolkit; its name.

    words: None asks for nothing. changes: members of ResourceConfig.
    """
    body = command_request(name, [sys.executable, *command], instances=2)
    body["ResourceConfig"] |= changes
    if words is not None:
        body["Environment"] = {BANDWIDTH: words}
    emulator.client("sagemaker").create_training_job(**body)
    return name


def flooded(
    emulator, name: str, words: str | None, size: int, count: int, **changes
) -> TrainingJob:
    """A job of `count` instances that move `size` bytes to and fro; it has ended."""
    hosts = [f"algo-{number + 1}" for number in range(count)]
    command = [str(SCRIPTS / "flood.py"), str(size), *hosts]
    return emulator.wait(started(emulator, name, words, command, InstanceCount=count, **changes))


def links_lines(job: TrainingJob) -> list[str]:
    """What the job's log says of its links."""
    return [line for line in job.lines("[local]") if line.startswith("links")]


def seconds_of(job: TrainingJob) -> dict[str, float]:
    assert job.status == "Completed", job.description.get("FailureReason")
    (line,) = job.lines("SECONDS")
    return json.loads(line)
