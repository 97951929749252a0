"""Run independent processes of this machine, torchrun among them, and read their JSON lines.

And where ranks that all run here meet: an interface and a port.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from workshop.launch.supervisor import Processes, ProcessFailed
from workshop.output import event

__all__ = ["INTERFACE", "TORCHRUN", "ProcessFailed", "free_port", "run_together"]

# What gloo must be told; it would otherwise take the address of this machine's name.
INTERFACE = "lo0" if sys.platform == "darwin" else "lo"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run")  # what the command torchrun runs


def free_port() -> int:
    """A TCP port of this machine that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_together(*commands: list, timeout: float = 120, folder: Path | None = None) -> list[dict]:
    """Start the commands at the same time, wait for all, return the JSON records they printed.

    Args:
        commands: each a list such as [sys.executable, "x.py"] or [*TORCHRUN, ..., "x.py"].
        timeout: seconds for all of them.
        folder: where they start; the notebook's folder if None.

    Returns: the first command's records, then the second's, and so on.

    Raises:
        ProcessFailed: one of them failed. All are ended, with the processes they started.
    """
    usual = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": INTERFACE}
    environment = {name: os.environ.get(name, value) for name, value in usual.items()}
    with Processes(commands, environment, folder=folder) as processes:
        processes.wait(timeout)
    by_command = sorted(processes.lines, key=lambda line: line.rank)
    return [record for line in by_command if (record := event(line.text))]
