"""What the tests of links share: jobs on narrow links, and what a host looks like beside them."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import psutil
from emulator_harness import SCRIPTS, command_request, records

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


def supervised(job: str) -> list[psutil.Process]:
    """Everything that the job's supervisor started, and what that started.

    Empty until both of its instances run what the job is.
    """
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if "local_sagemaker.cluster.supervisor" in process.cmdline():
                children = process.children(recursive=True)
                if {"algo-1", "algo-2"} <= {_host(child, job) for child in children}:
                    return children
    return []


def _host(process: psutil.Process, job: str) -> str | None:
    """The instance of the job whose process it is."""
    try:
        env = process.environ()
        return env.get("LOCAL_SAGEMAKER_HOST") if env.get("TRAINING_JOB_NAME") == job else None
    except (psutil.Error, OSError):
        return None


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
    (seconds,) = records(job, "SECONDS")
    return seconds
