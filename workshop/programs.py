"""Run scripts as processes of this machine, and read the JSON lines that they print."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TORCHRUN = (sys.executable, "-m", "torch.distributed.run")  # what the command torchrun runs
LINES = 8


class ProgramFailed(Exception):
    """A program ended with an error, or not in time; the message has its last lines."""


def run_together(*commands: list[str], timeout: float = 120, **variables: str) -> list[dict]:
    """Start the commands at the same time, wait for all, return the JSON lines they printed.

    Args:
        commands: each a list such as [sys.executable, "x.py"] or [*TORCHRUN, ..., "x.py"].
        timeout: seconds for all of them.
        variables: for their environment, besides this process's own.

    Raises:
        ProgramFailed: one of them failed. All are ended, with the processes they started.
    """
    with tempfile.TemporaryDirectory(prefix="workshop-programs-") as folder:
        outputs = [Path(folder) / str(number) for number in range(len(commands))]
        processes = [
            _start(command, output, variables)
            for command, output in zip(commands, outputs, strict=True)
        ]
        try:
            _wait(processes, timeout)
            for process, output in zip(processes, outputs, strict=True):
                if process.returncode:
                    raise ProgramFailed(_told(process, output))
            text = "".join(output.read_text() for output in outputs)
        finally:
            for process in processes:
                _end(process)
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def _start(command: list[str], output: Path, variables: dict[str, str]) -> subprocess.Popen:
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    environment = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": loopback, **os.environ}
    with output.open("w") as file:
        return subprocess.Popen(
            list(map(str, command)),
            env=environment | variables,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that all that it starts can be ended with it
        )


def _wait(processes: list[subprocess.Popen], timeout: float) -> None:
    """Until all have ended, one has failed, or the time is over."""
    deadline = time.monotonic() + timeout
    while any(process.poll() is None for process in processes):
        if any(process.poll() for process in processes):
            return
        if time.monotonic() > deadline:
            raise ProgramFailed(f"After {timeout:g} s a program had not ended.")
        time.sleep(0.02)


def _told(process: subprocess.Popen, output: Path) -> str:
    lines = output.read_text().strip().splitlines()[-LINES:]
    said = "\n".join(f"    {line}" for line in lines)
    return f"Exit status {process.returncode}: {' '.join(map(str, process.args))}\n{said}"


def _end(process: subprocess.Popen) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
