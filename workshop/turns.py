"""Compare speeds fairly: all processes are started first, then they take turns.

Two measurements minutes apart compare two moods of a machine that others use too. So here one
process alone, two that know nothing of each other, and two ranks are all ready before the
first measurement. They train in turns, a second each, and whoever has no turn is paused.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workshop.display import Progress
from workshop.mpirun import MpiFailed, Running, start
from workshop.paths import SCRIPTS

ONE, APART, RANKS = "one process", "two apart", "two ranks"
START_SECONDS = 400  # importing TensorFlow four times on a busy machine
TURN_SECONDS = 120
LAST_WORDS_SECONDS = 10


@dataclass
class _Player:
    """A process that is ready. talk: its end of the socket, lines of JSON."""

    kind: str
    pid: int
    talk: Any

    def pause(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGSTOP)

    def go(self, steps: int) -> None:
        os.kill(self.pid, signal.SIGCONT)
        self.talk.write(f"{steps}\n")
        self.talk.flush()

    def hear(self) -> dict:
        line = self.talk.readline()
        if not line:
            raise ConnectionError(f"A process ended in its turn ({self.kind}).")
        return json.loads(line)


def measure(
    batch: int,
    steps: int,
    rounds: int,
    hidden_units: int = 64,
    library: str = "tensorflow",
    **environment,
):
    """Measure, in turns, the speed of one process, of two processes apart, and of two ranks.

    Args:
        batch: images per step of each process; two ranks have a global batch twice as large.
        steps: how many one turn has.
        rounds: how many turns each has.
        hidden_units: width of the model's dense layer.
        library: "tensorflow" (the ranks use Horovod) or "torch" (DistributedDataParallel).
        environment: variables for all of them.

    Returns:
        A pandas table, a row for each round and a column for each of the three: images per
        second, summed over the processes that had the turn.

    Every process computes with one thread. Raises MpiFailed if one ends or hangs.
    """
    options = ["--global-batch-size", batch, "--hidden-units", hidden_units]
    options += ["--threads-per-rank", 1, "--library", library]
    with tempfile.TemporaryDirectory(prefix="workshop-turns-") as folder:
        meet = Path(folder) / "meet"
        command = [SCRIPTS / "take_turns.py", *options, "--meet", meet, "--kind"]
        with contextlib.ExitStack() as stack:
            door = stack.enter_context(_door(meet))
            running = [
                start(1, *command, "first", **environment),
                start(1, *command, "second", **environment),
                start(2, *command, "ranks", "--together", **environment),
            ]
            for one in running:
                stack.callback(one.stop)
            return _play(door, running, batch, steps, rounds)


def _play(door: socket.socket, running: list[Running], batch: int, steps: int, rounds: int):
    import pandas as pd

    live, rows = Progress(), []
    live.update("starting four processes")
    players = _gather(door, running)
    turns = {ONE: ["first"], APART: ["first", "second"], RANKS: ["ranks"]}
    try:
        for number in range(rounds + 1):
            speeds = {}
            for name, kinds in turns.items():
                playing = [one for kind in kinds for one in players if one.kind == kind]
                speeds[name] = sum(batch * steps / one for one in _turn(playing, steps))
            rows.append(speeds)
            live.update(f"round {number} of {rounds}")
    except (OSError, ValueError) as error:
        raise MpiFailed(f"{error} {_said(running)}") from error
    live.finish(f"{rounds} rounds of {len(turns)} turns, {steps} steps each")
    return pd.DataFrame(rows[1:])  # the first is a warm-up


def _turn(playing: list[_Player], steps: int) -> list[float]:
    for one in playing:
        one.go(steps)
    seconds = [one.hear()["seconds"] for one in playing]
    for one in playing:
        one.pause()
    return seconds


@contextlib.contextmanager
def _door(path: Path):
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(path))
        door.listen()
        door.settimeout(1)
        yield door


def _gather(door: socket.socket, running: list[Running]) -> list[_Player]:
    """Wait for all; each is paused as soon as it is ready."""
    players: list[_Player] = []
    deadline = time.monotonic() + START_SECONDS
    while len(players) < sum(one.ranks for one in running):
        try:
            line, _ = door.accept()
        except TimeoutError:
            if time.monotonic() > deadline or not all(one.alive for one in running):
                raise MpiFailed(f"Not all processes became ready. {_said(running)}") from None
            continue
        line.settimeout(TURN_SECONDS)
        talk = line.makefile("rw")
        hello = json.loads(talk.readline())
        players.append(_Player(hello["kind"], hello["pid"], talk))
        line.close()  # the file keeps it open
    for one in players:
        one.pause()
    return players


def _said(running: list[Running]) -> str:
    """What the ranks said last, once mpirun has passed on the words of a rank that gave up."""
    deadline = time.monotonic() + LAST_WORDS_SECONDS
    while all(one.alive for one in running) and time.monotonic() < deadline:
        time.sleep(0.05)
    for one in running:
        if not one.alive:
            one.stop()  # returns when all that it said has been read
    said = [[line for line in one.lines if line.rank is not None] for one in running]
    lines = [str(line) for one in said for line in one[-4:]]
    return "They said last:\n" + "\n".join(lines) if lines else "They had said nothing."
