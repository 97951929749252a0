"""Start processes on this machine, read what they print, and leave none of them behind.

    with Processes([[sys.executable, "a.py"], [sys.executable, "b.py"]]) as processes:
        processes.wait(timeout=60)
    processes.lines, processes.events()

Between this process and the commands stands one more, the supervisor of local_sagemaker. It ends
the commands, and all that they started, when this process asks for it, and when this process is
gone, even killed.
"""

from __future__ import annotations

import os
import shlex
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import local_sagemaker
from workshop.launch.recording import Record
from workshop.output import event, records

# The interface for gloo, which would otherwise take the address of this machine's name.
INTERFACE = "lo0" if sys.platform == "darwin" else "lo"
TORCHRUN = (sys.executable, "-m", "torch.distributed.run")  # what the command torchrun runs
LAST_LINES = 8


class ProcessFailed(Exception):
    """A process ended with an error, or not in time; the message has its last lines."""


class Interrupted(KeyboardInterrupt):
    """An interrupt, once what had been started has ended. A notebook shows one line of it."""

    def __str__(self) -> str:
        return "Interrupted. All processes it had started have ended."

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


@dataclass(frozen=True)
class Line:
    """A line of output. rank: whose, None for the launcher itself. error: it came by stderr."""

    rank: int | None
    text: str
    error: bool = False

    def __str__(self) -> str:
        return f"[{'launcher' if self.rank is None else self.rank}] {self.text}"

    @property
    def event(self) -> dict | None:
        """The JSON record that a rank printed in this line, with the rank, or None."""
        record = None if self.rank is None else event(self.text)
        return record and {"rank": self.rank} | record


class Processes:
    """Processes of this machine that are started together and end together.

    Attributes:
        commands: the words of each command.
        lines: all that was printed so far, in order of arrival.
        record: the folder in which the ranks note where they are, for `workshop why`.
    """

    def __init__(
        self,
        commands: Sequence[Sequence],
        environment: Mapping[str, object] | None = None,
        *,
        each: Sequence[Mapping[str, object]] | None = None,
        descriptors: Sequence[Sequence[int]] | None = None,
        captured: bool = True,
        line_from: Callable[[int, str], Line] = Line,
    ) -> None:
        """Start the commands. Call `end` in any case, or use a `with` block.

        Args:
            commands: the words of each command.
            environment: variables for all, besides this process's own. each: further ones, by
                command.
            descriptors: file descriptors that each command inherits.
            captured: read stdout and stderr, as one text; otherwise they go where this process's
                own go.
            line_from: makes a Line of a command's index and a line's text.
        """
        self.commands = [[str(word) for word in command] for command in commands]
        self.lines: list[Line] = []
        self._began = time.monotonic()
        self._statuses: list[int | None] | None = None  # when `end` was called
        self._record = Record(self.commands)
        self.record = self._record.folder

        variables = [
            self._record.environment({**(environment or {}), **of_command})
            for of_command in each or [{}] * len(self.commands)
        ]
        self._line_from = line_from
        self._over = False  # all have ended, and what they printed was read
        self._changed = threading.Condition()
        self._supervisor = local_sagemaker.supervise(
            self.commands,
            variables,
            self._on_event,
            descriptors=descriptors,
            captured=captured,
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.end()
        if kind is KeyboardInterrupt:
            raise Interrupted from None

    @property
    def alive(self) -> bool:
        """Whether any of them may still run."""
        return not self._over

    @property
    def pids(self) -> list[int | None]:
        """Of each command; None before it has started."""
        return [self._supervisor.pids.get(str(index)) for index in range(len(self.commands))]

    @property
    def statuses(self) -> list[int | None]:
        """Of each command; None until it has ended by itself. Negative: a signal killed it."""
        statuses = self._supervisor.statuses
        return self._statuses or [statuses.get(str(index)) for index in range(len(self.commands))]

    @property
    def seconds(self) -> float:
        """Since they were started."""
        return time.monotonic() - self._began

    @property
    def failed(self) -> int | None:
        """Index of the first command that ended with an error, None if none did."""
        return next((index for index, status in enumerate(self.statuses) if status), None)

    def events(self, kind: str | None = None) -> list[dict]:
        """The JSON records printed so far, each with its rank. kind: only those of this event."""
        return [record for record in records(self.lines) if kind in (None, record["event"])]

    def wait(self, timeout: float, show: Callable[[Line], None] = lambda line: None) -> None:
        """Wait until all have ended, `timeout` seconds after their start at the latest.

        show: called with each line as it comes. However this returns, all are ended: after an
        interrupt too.

        Raises ProcessFailed as soon as one ends with an error, or when the time is up.
        """
        shown = 0

        def show_new() -> None:
            nonlocal shown
            new = self.lines[shown:]
            shown += len(new)
            for line in new:
                show(line)

        try:
            in_time = True
            while self.alive and self.failed is None and in_time:
                left = max(0.0, timeout - self.seconds)
                in_time = self.until(
                    lambda: len(self.lines) > shown or self.failed is not None, left
                )
                show_new()
        finally:
            self.end()
        show_new()
        if self.failed is not None:
            raise ProcessFailed(self._failure(self.failed))
        if not in_time:
            raise ProcessFailed(f"After {timeout:g} s they had not ended. {self.last_lines()}")
        if None in self.statuses:
            raise ProcessFailed(f"Their supervisor was killed. {self.last_lines()}")

    def until(self, happened: Callable[[], object], timeout: float) -> bool:
        """Wait until `happened()`, or until all have ended; False when the time (s) is up."""
        with self._changed:
            return self._changed.wait_for(lambda: self._over or bool(happened()), timeout)

    def end(self) -> None:
        """End all of them and what they started. Harmless if they have ended."""
        self._statuses = self.statuses
        self._supervisor.stop()
        self._thread.join()
        self._record.close(self._statuses)

    def _run(self) -> None:
        try:
            self._supervisor.run()
        finally:
            with self._changed:
                self._over = True
                self._changed.notify_all()

    def _on_event(self, event: dict) -> None:
        with self._changed:
            for text in event.get("lines", []):
                self.lines.append(line := self._line_from(int(event["host"]), text))
                self._record.line(line.rank, line.text)
            self._changed.notify_all()

    def last_lines(self, rank: int | None = None) -> str:
        """The last lines that a rank printed, or all ranks, as a text for an error message."""
        lines = [line for line in self.lines if line.rank is not None and line.text.strip()]
        lines = [line for line in lines if rank in (None, line.rank)]
        if not lines:
            return "It printed nothing." if rank is not None else "They printed nothing."
        return "Last lines:\n" + "\n".join(map(str, lines[-LAST_LINES:]))

    def _failure(self, index: int) -> str:
        status = self.statuses[index]
        assert status is not None
        how = f"Exit status {status}" if status > 0 else f"Killed by signal {-status}"
        return f"{how}: {shlex.join(self.commands[index])}\n{self.last_lines(index)}"


def free_port() -> int:
    """A TCP port of this machine that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_free(port: int) -> bool:
    """Whether a server can bind to this port of 127.0.0.1."""
    with socket.socket() as server:
        # As servers do: a connection that lingers after its end does not hold the port.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def run_together(*commands: list, timeout: float = 120) -> list[dict]:
    """Start the commands at the same time, wait for all, return the JSON records they printed.

    Args:
        commands: each a list such as [sys.executable, "x.py"] or [*TORCHRUN, ..., "x.py"].
        timeout: seconds for all of them.

    Returns: the first command's records, then the second's, and so on.

    Raises:
        ProcessFailed: one of them failed. All are ended, with the processes they started.
    """
    defaults = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": INTERFACE}
    environment = {name: os.environ.get(name, value) for name, value in defaults.items()}
    with Processes(commands, environment) as processes:
        processes.wait(timeout)
    by_command = sorted(processes.lines, key=lambda line: line.rank or 0)
    return [record for line in by_command if (record := event(line.text))]
