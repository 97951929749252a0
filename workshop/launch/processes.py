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

import pandas as pd

from workshop.loopback import INTERFACE, free_port

__all__ = ["TORCHRUN", "ProgramFailed", "free_port", "run_together", "train_each"]

TORCHRUN = (sys.executable, "-m", "torch.distributed.run")  # what the command torchrun runs
LINES = 8


class ProgramFailed(Exception):
    """A program ended with an error, or not in time; the message has its last lines."""


def run_together(*commands: list, timeout: float = 120, folder: Path | None = None) -> list[dict]:
    """Start the commands at the same time, wait for all, return the JSON lines they printed.

    Args:
        commands: each a list such as [sys.executable, "x.py"] or [*TORCHRUN, ..., "x.py"].
        timeout: seconds for all of them.
        folder: where they start; the notebook's folder if None.

    Raises:
        ProgramFailed: one of them failed. All are ended, with the processes they started.
    """
    with tempfile.TemporaryDirectory(prefix="workshop-programs-") as temporary:
        outputs = [Path(temporary) / str(number) for number in range(len(commands))]
        processes = [
            _start(command, output, folder)
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


def train_each(scripts: dict[str, list], options: list, folder: Path) -> pd.DataFrame:
    """Run training scripts one after the other; a row for each with its speed and its weights.

    Args:
        scripts: name -> the command's beginning. options: what all of them get besides.
        folder: where they start, scripts/.

    The speed is that of the fastest epoch: other programs only ever take time away.
    """
    rows = {}
    for name, command in scripts.items():
        events = run_together([*command, *options], timeout=300, folder=folder)
        speeds = [one["samples_per_second"] for one in events if one["event"] == "epoch"]
        hashes = [one["weights_sha256"] for one in events if one["event"] == "weights"]
        rows[name] = {
            "processes": len(hashes),
            "images/s": round(max(one for one in speeds if one)),
            "different weights": len(set(hashes)),
            "SHA-256 of the weights": hashes[0][:12] + "…",
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _start(command: list, output: Path, folder: Path | None) -> subprocess.Popen:
    environment = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": INTERFACE, **os.environ}
    with output.open("w") as file:
        return subprocess.Popen(
            list(map(str, command)),
            env=environment,
            cwd=folder,
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
