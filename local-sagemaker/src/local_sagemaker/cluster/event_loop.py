"""The supervisor's event loop, the same for both kinds of instance.

It reads what instances print, reaps them, and obeys the emulator:

    stdin   "stop" ends the job (SIGTERM, grace, SIGKILL); end of file kills it at once,
            so that a job never outlives an emulator that was killed
    stdout  one JSON object a line: {"event": "log" | "started" | "exit" | "error", ...}
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import selectors
import signal
import sys
import time
from collections.abc import Callable, Sequence

LINE_LIMIT = 256 * 1024  # bytes; CloudWatch's own limit for one event
DRAIN_SECONDS = 1.0
PEER_GRACE_SECONDS = 5.0


@dataclasses.dataclass
class Instance:
    """A running instance. output: where it is read, unless None. signal: sends it a signal."""

    name: str
    pid: int
    output: int | None
    signal: Callable[[int], None]


def emit(**event: object) -> None:
    """Send one event to the emulator."""
    os.write(sys.stdout.fileno(), (json.dumps(event) + "\n").encode())


def emit_note(host: str, text: str) -> None:
    """Put a line of the emulator's own into the log of `host`."""
    emit(event="log", host=host, time=int(time.time() * 1000), lines=[f"[local] {text}"])


class _Lines:
    """Cuts a stream of bytes into log lines and emits them."""

    def __init__(self, host: str) -> None:
        self.host, self.rest = host, b""

    def feed(self, data: bytes) -> None:
        *lines, self.rest = (self.rest + data).split(b"\n")
        if len(self.rest) > LINE_LIMIT:
            lines.append(self.rest)
            self.rest = b""
        self._send(lines)

    def close(self) -> None:
        self._send([self.rest] if self.rest else [])
        self.rest = b""

    def _send(self, lines: list[bytes]) -> None:
        if lines:
            texts = [line.rstrip(b"\r").decode("utf-8", "replace") for line in lines]
            emit(event="log", host=self.host, time=int(time.time() * 1000), lines=texts)


class Loop:
    """Runs until every instance has ended. together: the first failure ends the others too."""

    def __init__(
        self, instances: Sequence[Instance], grace_seconds: float, together: bool = True
    ) -> None:
        self.alive = {instance.pid: instance for instance in instances}
        self.grace_seconds, self.together = grace_seconds, together
        self.kill_at: float | None = None
        self.selector = selectors.DefaultSelector()
        self.lines: dict[int, _Lines] = {}
        for instance in instances:
            if instance.output is not None:
                self.lines[instance.output] = _Lines(instance.name)
                os.set_blocking(instance.output, False)
                self.selector.register(instance.output, selectors.EVENT_READ)
        os.set_blocking(0, False)
        self.selector.register(0, selectors.EVENT_READ)

    def run(self) -> None:
        while self.alive:
            self._read(timeout=0.05)
            self._reap()
            if self.kill_at is not None and time.monotonic() >= self.kill_at:
                self._signal_all(signal.SIGKILL)
        deadline = time.monotonic() + DRAIN_SECONDS
        while self.lines and time.monotonic() < deadline:
            self._read(timeout=0.05)
        for lines in self.lines.values():
            lines.close()

    def _read(self, timeout: float) -> None:
        for key, _ in self.selector.select(timeout):
            with contextlib.suppress(BlockingIOError):
                data = os.read(key.fd, 65536)
                if key.fd == 0:
                    self._command(data)
                elif data:
                    self.lines[key.fd].feed(data)
                else:
                    self.selector.unregister(key.fd)
                    self.lines.pop(key.fd).close()

    def _command(self, data: bytes) -> None:
        if not data:  # the emulator is gone
            self.selector.unregister(0)
            self._signal_all(signal.SIGKILL)
            self.kill_at = time.monotonic()
        elif b"stop" in data:
            self._end(self.grace_seconds)

    def _reap(self) -> None:
        for pid in list(self.alive):
            done, status = os.waitpid(pid, os.WNOHANG)
            if not done:
                continue
            code = os.waitstatus_to_exitcode(status)
            instance = self.alive.pop(pid)
            emit(event="exit", host=instance.name, status=code)
            if code != 0 and self.together:
                self._end(min(self.grace_seconds, PEER_GRACE_SECONDS))

    def _end(self, grace: float) -> None:
        """SIGTERM now, SIGKILL after `grace` seconds; asking twice never postpones."""
        at = time.monotonic() + grace
        if self.kill_at is None:
            self._signal_all(signal.SIGTERM)
            self.kill_at = at
        else:
            self.kill_at = min(self.kill_at, at)

    def _signal_all(self, number: int) -> None:
        for instance in self.alive.values():
            with contextlib.suppress(ProcessLookupError):
                instance.signal(number)
