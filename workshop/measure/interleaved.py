"""Interleaved timing: compare speeds fairly on a machine that is not yours alone.

Two measurements minutes apart compare two moments of a machine that others use too. So what is
compared is measured alternately: A B C, A B C, and so on. Whatever disturbs the machine for a
while then disturbs all of them.

    interleave(seconds_of, {"A": 1, "B": 2}, repeats=5)           # a row for each repeat
    training_speeds(batch=256, steps=4, rounds=7)                 # processes, ready beforehand
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from workshop.launch.mpirun import full_words, line_from_mpirun, mpirun_command
from workshop.launch.processes import Processes, ProcessFailed
from workshop.paths import DEMOS

ONE, INDEPENDENT, RANKS = "one process", "two independent", "two ranks"
GROUPS = {ONE: ["first"], INDEPENDENT: ["first", "second"], RANKS: ["ranks"]}
START_SECONDS = 400  # importing TensorFlow four times on a busy machine
ROUND_SECONDS = 120
LAST_WORDS_SECONDS = 10


def interleave(measure: Callable, settings: dict[str, dict], repeats: int) -> pd.DataFrame:
    """Measure each setting `repeats` times, alternately.

    Args:
        measure: called with a setting; returns a number.
        settings: name -> setting.

    Returns: a row for each repeat, a column for each name.
    """
    if repeats < 1 or not settings:
        raise ValueError("Give at least one setting and one repeat.")
    rows = [{name: measure(one) for name, one in settings.items()} for _ in range(repeats)]
    return pd.DataFrame(rows)


@dataclass
class _Worker:
    """A process that is ready to train. socket: lines of JSON."""

    kind: str
    pid: int
    socket: Any

    def pause(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGSTOP)

    def start(self, steps: int) -> None:
        os.kill(self.pid, signal.SIGCONT)
        self.socket.write(f"{steps}\n")
        self.socket.flush()

    def seconds(self) -> float:
        """What its steps took, when they are done."""
        line = self.socket.readline()
        if not line:
            raise ConnectionError(f"no answer from {self.kind}")
        return json.loads(line)["seconds"]


def training_speeds(
    batch: int,
    steps: int,
    rounds: int,
    hidden_units: int = 64,
    library: str = "tensorflow",
    **environment,
) -> pd.DataFrame:
    """Measure alternately the speed of one process, of two independent ones, and of two ranks.

    All four processes are started first: one that trains alone and also beside the second, the
    second, and two ranks. Processes that are not being measured are paused.

    Args:
        batch: images per step of each process; two ranks have a global batch twice as large.
        steps: how many one measurement has.
        rounds: how many measurements each has.
        hidden_units: width of the model's dense layer.
        library: "tensorflow" (the ranks use Horovod) or "torch" (DistributedDataParallel).
        environment: variables for all of them.

    Returns:
        A row for each round and a column for each of the three: images per second, summed over
        the processes that were measured together.

    Every process computes with one thread. Raises ProcessFailed if one ends or hangs.
    """
    options = ["--global-batch-size", batch, "--hidden-units", hidden_units]
    options += ["--threads-per-rank", 1, "--library", library]
    with tempfile.TemporaryDirectory(prefix="workshop-interleaved-") as folder:
        path = Path(folder) / "socket"
        command = (DEMOS / "timed_steps.py", *options, "--socket", path, "--kind")
        commands = [
            mpirun_command(ranks, full_words((*command, *more)))
            for ranks, more in ((1, ["first"]), (1, ["second"]), (2, ["ranks", "--together"]))
        ]
        with (
            _listener(path) as listener,
            Processes(commands, environment, line_from=line_from_mpirun) as all_,
        ):
            return _measure(listener, all_, batch * steps, steps, rounds)


def _measure(listener, processes: Processes, images: int, steps: int, rounds: int) -> pd.DataFrame:
    """images: of one process in one measurement."""
    workers = _connect(listener, processes, count=4)

    def speed(kinds: list[str]) -> float:
        measured = [worker for worker in workers if worker.kind in kinds]
        for worker in measured:
            worker.start(steps)
        seconds = [worker.seconds() for worker in measured]
        for worker in measured:
            worker.pause()
        return sum(images / one for one in seconds)

    try:
        found = interleave(speed, GROUPS, rounds + 1)
    except (OSError, ValueError) as error:
        why = f"A process ended or hung while it was measured: {error}."
        raise ProcessFailed(f"{why} {_last_lines(processes)}") from error
    return found.iloc[1:].reset_index(drop=True)  # the first is a warm-up


@contextlib.contextmanager
def _listener(path: Path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(1)
        yield listener


def _connect(listener: socket.socket, processes: Processes, count: int) -> list[_Worker]:
    """Wait until `count` processes have reported; then pause all."""
    workers: list[_Worker] = []
    while len(workers) < count:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            if processes.seconds > START_SECONDS or any(
                status is not None for status in processes.statuses
            ):
                told = _last_lines(processes)
                raise ProcessFailed(f"Not all processes became ready. {told}") from None
            continue
        connection.settimeout(ROUND_SECONDS)
        lines = connection.makefile("rw")
        hello = json.loads(lines.readline())
        workers.append(_Worker(hello["kind"], hello["pid"], lines))
        connection.close()  # the file keeps it open
    for worker in workers:
        worker.pause()
    return workers


def _last_lines(processes: Processes) -> str:
    """What the ranks printed last, once mpirun has passed on the words of a rank that gave up."""
    processes.until(lambda: processes.failed is not None, LAST_WORDS_SECONDS)
    processes.end()
    return processes.last_lines()
