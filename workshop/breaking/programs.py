"""Ranks that are expected to fail: start them, read what they say, end them in any case."""

from __future__ import annotations

import contextlib
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from workshop.events import events
from workshop.guard import start_guarded
from workshop.loopback import INTERFACE, free_port
from workshop.mpirun_command import mpirun_command
from workshop.paths import SCRIPTS
from workshop.programs import TORCHRUN

SCRIPT = SCRIPTS / "break_training.py"
TAG = re.compile(r"^\[\d+,(\d+)\]<std(?:out|err)>: ?")  # mpirun's, before what a rank said
LAST_WORDS_SECONDS = 5.0
VARIABLES = {
    "GLOO_SOCKET_IFNAME": INTERFACE,
    # Without it ranks that torchrun starts again find, now and then, the addresses of those that
    # are dead (https://github.com/pytorch/pytorch/issues/135712, read 2026-11-22).
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
}


@dataclass(frozen=True)
class Ended:
    """A program that has ended. code: its exit status, None if it was ended. lines: its words."""

    code: int | None
    lines: list[str]

    def events(self, kind: str) -> list[dict]:
        """The JSON records of one kind that the ranks printed."""
        return events(self.lines, kind)

    def first(self, pattern: str) -> str:
        """The first line in which a regular expression is found; empty if there is none."""
        return next((line for line in self.lines if re.search(pattern, line)), "")


def torchrun(way: str, *options: object, ranks: int = 2, restarts: int = 0) -> list[str]:
    """The command that runs one of scripts/breaking/ under torchrun."""
    more = ["--standalone", "--nproc_per_node", ranks, "--max-restarts", restarts]
    return [str(one) for one in (*TORCHRUN, *more, SCRIPT, way, *options)]


def mpirun(way: str, *options: object, ranks: int = 2) -> list[str]:
    """The command that runs one of scripts/breaking/ under mpirun."""
    return mpirun_command(ranks, [sys.executable, str(SCRIPT), way, *map(str, options)])


class Program:
    """A command while it runs. It is ended with all that it started when the `with` block ends.

    Between this process and the command stands the guard of workshop/guard.py. It ends all of
    them when this process is gone, too.
    """

    def __init__(self, command: list[str]) -> None:
        self.lines: list[str] = []
        self.heard = time.monotonic()  # when the last line came
        self._guard = start_guarded(command, VARIABLES | {"MASTER_PORT": free_port()})
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._guard.terminate()
        self._guard.wait()
        self._reader.join(LAST_WORDS_SECONDS)

    def _read(self) -> None:
        with self._guard.stdout as stream:
            for raw in stream:
                self.lines.append(TAG.sub("", raw.rstrip("\n")))
                self.heard = time.monotonic()

    def events(self, kind: str) -> list[dict]:
        """The JSON records of one kind so far."""
        return events(list(self.lines), kind)

    def until(self, deadline: float, happened: Callable[[], bool] = lambda: False) -> bool:
        """Wait until it has ended or something has happened; False when the time is up."""
        while self._guard.poll() is None and not happened():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def end(self, deadline: float) -> Ended:
        """Wait for its end; what came of it."""
        ended = self.until(deadline)
        if ended:
            self._reader.join(LAST_WORDS_SECONDS)
        return Ended(self._guard.returncode if ended else None, list(self.lines))


def run(command: list[str], deadline: float) -> Ended:
    """Run a command to its end, or to the deadline (time.monotonic())."""
    with Program(command) as program:
        return program.end(deadline)


def run_together(commands: list[list[str]], deadline: float) -> Iterator[Ended]:
    """Run commands at the same time; what came of each."""
    with contextlib.ExitStack() as stack:
        programs = [stack.enter_context(Program(one)) for one in commands]
        yield from [one.end(deadline) for one in programs]
