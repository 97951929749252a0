"""Start a set of processes, read what they print, and leave none of them behind.

    with Processes([[sys.executable, "a.py"], [sys.executable, "b.py"]]) as processes:
        processes.wait(timeout=60)
    processes.lines, processes.events()

Between this process and the commands stands one more: the supervisor, which is this file run as a
program. It ends the commands, and all that they started, when it is told to, and when this
process is gone, even killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from workshop.output import event

GRACE_SECONDS = 5.0  # between SIGTERM and SIGKILL
POLL_SECONDS = 0.05
LAST_LINES = 8
NOT_FOUND = 127  # a shell's status for a command that cannot be started
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


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


def records(lines: Iterable[Line]) -> list[dict]:
    """The JSON records in lines of ranks, in their order, each with its rank."""
    found = [(line.rank, event(line.text)) for line in lines if line.rank is not None]
    return [{"rank": rank} | record for rank, record in found if record]


class Processes:
    """Processes of this machine that are started together and end together.

    Attributes:
        commands: the words of each command.
        lines: all that was printed so far, in order of arrival.
        pids, statuses: of each command; None before it has started, and before it has ended by
            itself. The status of one that a signal killed is negative.
    """

    def __init__(
        self,
        commands: Sequence[Sequence],
        environment: Mapping[str, object] | None = None,
        *,
        each: Sequence[Mapping[str, object]] | None = None,
        descriptors: Sequence[Sequence[int]] | None = None,
        folder: Path | None = None,
        captured: bool = True,
        line_of: Callable[[int, str], Line] = Line,
    ) -> None:
        """Start the commands. Call `end` in any case, or use a `with` block.

        Args:
            commands: the words of each command.
            environment: variables for all, besides this process's own. each: more, by command.
            descriptors: file descriptors that each command inherits.
            folder: where they start; this process's own folder if None.
            captured: read stdout and stderr, as one text; otherwise they go where this process's
                own go.
            line_of: makes a Line of a command's index and a line's text.
        """
        self.commands = [[str(word) for word in command] for command in commands]
        self.lines: list[Line] = []
        self.pids: list[int | None] = [None] * len(self.commands)
        self.statuses: list[int | None] = [None] * len(self.commands)
        self._changed = threading.Condition()
        self._began = time.monotonic()
        self._readers: list[threading.Thread] = []
        self._open = 0  # how many streams are still read
        request: list[dict] = []
        for index, command in enumerate(self.commands):
            output = None
            if captured:
                output = self._read_in_thread(functools.partial(self._add, line_of, index))
            variables = (environment or {}) | (each[index] if each else {})
            request.append(
                {
                    "command": command,
                    "environment": {name: str(value) for name, value in variables.items()},
                    "folder": str(folder) if folder else None,
                    "output": output,
                    "descriptors": list(descriptors[index]) if descriptors else [],
                }
            )
        reports = self._read_in_thread(self._note)
        ours = [reports, *(one["output"] for one in request if captured)]
        self._supervisor = subprocess.Popen(
            [
                sys.executable,
                "-P",  # no modules of the current folder
                "-m",
                "workshop.launch.supervisor",
                str(os.getpid()),
                str(reports),
            ],
            stdin=subprocess.PIPE,
            pass_fds=[*ours, *(number for one in request for number in one["descriptors"])],
            start_new_session=True,  # a Ctrl-C at the terminal reaches this process alone
        )
        for number in ours:
            os.close(number)
        with contextlib.suppress(BrokenPipeError), self._supervisor.stdin as stream:
            stream.write(json.dumps(request).encode())

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.end()
        if kind is KeyboardInterrupt:
            raise Interrupted from None

    @property
    def alive(self) -> bool:
        """Whether any of them may still run."""
        return self._supervisor.poll() is None

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
        return [one for one in records(self.lines) if kind in (None, one["event"])]

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
            while not self._over() and self.failed is None and in_time:
                left = max(0.0, timeout - self.seconds)
                in_time = self.until(
                    lambda: len(self.lines) > shown or self.failed is not None, left
                )
                show_new()
        finally:
            self.end()
        show_new()
        if self.failed is not None:
            raise ProcessFailed(self._why(self.failed))
        if not in_time:
            raise ProcessFailed(f"After {timeout:g} s they had not ended. {self.last_lines()}")
        if None in self.statuses:
            raise ProcessFailed(f"Their supervisor was killed. {self.last_lines()}")

    def until(self, happened: Callable[[], bool], timeout: float) -> bool:
        """Wait until `happened()`, or until all have ended; False when the time (s) is up."""
        with self._changed:
            return self._changed.wait_for(lambda: happened() or self._over(), timeout)

    def end(self) -> None:
        """End all of them and what they started. Harmless if they have ended."""
        with contextlib.suppress(ProcessLookupError):
            self._supervisor.terminate()
        self._supervisor.wait()
        for reader in self._readers:
            reader.join(GRACE_SECONDS)

    def last_lines(self, rank: int | None = None) -> str:
        """The last lines that a rank printed, or all ranks, as a text for an error message."""
        ranks = [line for line in self.lines if line.rank is not None and line.text.strip()]
        found = [line for line in ranks if rank in (None, line.rank)]
        if not found:
            return "It printed nothing." if rank is not None else "They printed nothing."
        return "Last lines:\n" + "\n".join(map(str, found[-LAST_LINES:]))

    def _over(self) -> bool:
        """Whether all have ended and everything has been read."""
        return self._open == 0

    def _why(self, index: int) -> str:
        status = self.statuses[index]
        how = f"Exit status {status}" if status > 0 else f"Killed by signal {-status}"
        return f"{how}: {shlex.join(self.commands[index])}\n{self.last_lines(index)}"

    def _read_in_thread(self, handle: Callable[[str], None]) -> int:
        """Handle each line of a new pipe; the descriptor to write to."""
        source, sink = os.pipe()
        reader = threading.Thread(target=self._read, args=(source, handle), daemon=True)
        self._readers.append(reader)
        self._open += 1
        reader.start()
        return sink

    def _read(self, source: int, handle: Callable[[str], None]) -> None:
        with open(source, errors="replace") as stream:
            for raw in stream:
                with self._changed:
                    handle(raw.rstrip("\n"))
                    self._changed.notify_all()
        with self._changed:
            self._open -= 1
            self._changed.notify_all()

    def _add(self, line_of: Callable[[int, str], Line], index: int, text: str) -> None:
        self.lines.append(line_of(index, text))

    def _note(self, text: str) -> None:
        """A report of the supervisor: [index, "pid" or "status", number]."""
        index, kind, number = json.loads(text)
        (self.pids if kind == "pid" else self.statuses)[index] = number


def _supervise(parent: int, reports: int) -> None:
    """Start what stdin asks for. End it all when told to, or when the parent is gone."""
    told: list[bool] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.append(True))  # a handler takes no lock
    _prctl(PR_SET_CHILD_SUBREAPER, 1)  # what a dead mpirun leaves becomes this process's child
    running = {}
    with open(reports, "w", buffering=1) as stream:

        def report(index: int, kind: str, number: int) -> None:
            with contextlib.suppress(OSError):  # nobody listens any more
                print(json.dumps([index, kind, number]), file=stream)

        for index, one in enumerate(json.load(sys.stdin)):
            if process := _start(one):
                running[index] = process
                report(index, "pid", process.pid)
            else:
                report(index, "status", NOT_FOUND)
        while running and not told and os.getppid() == parent:
            time.sleep(POLL_SECONDS)
            for index, process in list(running.items()):
                if (status := process.poll()) is not None:
                    del running[index]
                    report(index, "status", status)
        _end_all(list(running.values()))


def _start(one: dict) -> subprocess.Popen | None:
    """One command; None where it cannot be started, which its output then says."""
    output = one["output"]
    try:
        return subprocess.Popen(
            one["command"],
            env=os.environ | one["environment"],
            cwd=one["folder"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=one["descriptors"],
            preexec_fn=lambda: _prctl(PR_SET_PDEATHSIG, signal.SIGKILL),  # a killed supervisor
        )
    except OSError as error:
        os.write(output or 2, f"{error}\n".encode())
        return None
    finally:
        for number in filter(None, [output, *one["descriptors"]]):
            os.close(number)  # so that a reader sees the end when the command has ended


def _end_all(running: list[subprocess.Popen]) -> None:
    import psutil

    if running:
        everything = psutil.Process().children(recursive=True)
        for process in everything:  # one that is stopped cannot end
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)
        for process in running:
            process.terminate()  # mpirun ends its ranks, the stubborn ones after a while
        psutil.wait_procs(everything, GRACE_SECONDS)
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def _prctl(option: int, value: int) -> None:
    if LIBC:
        LIBC.prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    _supervise(*map(int, sys.argv[1:]))
