"""A supervisor, seen from the process that starts it; and commands of this machine that start
together, end together, and leave no process behind."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence

from local_sagemaker.cluster.spec import HOST_ENV, JOB_ENV, PROCESSES, ClusterSpec, Host

GRACE_SECONDS = 5.0  # between SIGTERM and SIGKILL


@dataclasses.dataclass
class Command:
    """A program and how it starts.

    environment: variables besides this process's own. folder: where it starts; None for this
    process's own. descriptors: file descriptors that it inherits. captured: its standard output
    and error are read, as one text; otherwise they go where this process's own go.
    """

    words: Sequence[str]
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    folder: str | None = None
    descriptors: Sequence[int] = ()
    captured: bool = True


class SupervisedProcesses:
    """Running commands. Their supervisor, a process between this one and theirs, ends them and all
    that they started: when it is told to, and when this process is gone, even killed.

    on_line: called with a command's index and a line of its output, in a thread.
    """

    def __init__(
        self,
        commands: Sequence[Command],
        on_line: Callable[[int, str], None] = lambda index, line: None,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        """Start the commands. Call `end` in any case, or use a `with` block."""
        self.count, self.on_line = len(commands), on_line
        self.over = False  # all have ended, and what they printed was read
        self.changed = threading.Condition()
        job = f"{os.getpid()}/{uuid.uuid4().hex}"
        hosts = [_host(index, command, job) for index, command in enumerate(commands)]
        spec = ClusterSpec(job, PROCESSES, hosts, [], grace_seconds=grace_seconds, together=False)
        self.supervisor = SupervisorProcess(spec, self._on_event)
        for host in hosts:
            for number in host.output:
                os.close(number)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def __enter__(self) -> SupervisedProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pids(self) -> list[int | None]:
        """By command; None before it has started."""
        return [self.supervisor.pids.get(str(index)) for index in range(self.count)]

    @property
    def statuses(self) -> list[int | None]:
        """By command; None before it has ended. Negative: the signal that killed it. 127: it could
        not be started."""
        return [self.supervisor.statuses.get(str(index)) for index in range(self.count)]

    def until(self, happened: Callable[[], bool], timeout: float) -> bool:
        """Wait until `happened()`, or until all have ended; False when the time (s) is up."""
        with self.changed:
            return self.changed.wait_for(lambda: self.over or happened(), timeout)

    def end(self) -> None:
        """End all of them and what they started. Harmless if they have ended."""
        self.supervisor.stop()
        self.thread.join()

    def _run(self) -> None:
        try:
            self.supervisor.run()
        finally:
            with self.changed:
                self.over = True
                self.changed.notify_all()

    def _on_event(self, event: dict) -> None:
        with self.changed:
            for line in event.get("lines", []):
                self.on_line(int(event["host"]), line)
            self.changed.notify_all()


def _host(index: int, command: Command, job: str) -> Host:
    env = os.environ | dict(command.environment) | {JOB_ENV: job, HOST_ENV: str(index)}
    return Host(
        name=str(index),
        directory="",
        env=env,
        command=list(command.words),
        folder=command.folder,
        descriptors=list(command.descriptors),
        output=[] if command.captured else [os.dup(1), os.dup(2)],
    )


LOG = logging.getLogger(__name__)


class SupervisorProcess:
    """A running supervisor. When this process dies, its pipe closes, and all that it runs ends.

    on_event: called with each event (see event_loop.py). pids, statuses: of the hosts' processes,
    statuses in the order in which they ended; that of one which a signal killed is negative, or
    128 and the signal's number. errors: the supervisor's own.
    """

    def __init__(
        self, spec: ClusterSpec, on_event: Callable[[dict], None] = lambda event: None
    ) -> None:
        self.spec, self.on_event = spec, on_event
        self.pids: dict[str, int] = {}
        self.statuses: dict[str, int] = {}
        self.errors: list[str] = []
        self.lock = threading.Lock()
        self.stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed in _close)
        with tempfile.TemporaryFile("w+") as stream:
            stream.write(spec.to_json())
            stream.seek(0)
            # -P: no modules of the current folder
            command = [sys.executable, "-P", "-m", "local_sagemaker.cluster.supervisor"]
            inherited = [number for host in spec.hosts for number in host.descriptors + host.output]
            self.process = subprocess.Popen(
                [*command, f"/dev/fd/{stream.fileno()}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.stderr,
                pass_fds=[stream.fileno(), *inherited],
                start_new_session=True,  # Ctrl-C is for this process, which ends its jobs itself
            )
        assert self.process.stdin and self.process.stdout  # pipes
        self.commands, self.events = self.process.stdin, self.process.stdout

    @property
    def failed(self) -> str | None:
        """The first host whose process failed."""
        return next((host for host, status in self.statuses.items() if status != 0), None)

    def stop(self) -> None:
        """SIGTERM to every process; SIGKILL after the grace period."""
        with self.lock, contextlib.suppress(BrokenPipeError, ValueError):  # it has ended already
            self.commands.write(b"stop\n")
            self.commands.flush()

    def kill(self) -> None:
        """End everything at once."""
        with self.lock, contextlib.suppress(BrokenPipeError):
            self.commands.close()

    def run(self) -> None:
        """Read events until everything has ended. Raises what `on_event` raises."""
        try:
            for line in self.events:
                with contextlib.suppress(ValueError):  # it was cut off with the supervisor
                    self._on(json.loads(line))
            self.process.wait()
        finally:
            self._close()

    def _on(self, event: dict) -> None:
        if event["event"] == "started":
            self.pids[event["host"]] = event["pid"]
        elif event["event"] == "exit":
            self.statuses[event["host"]] = event["status"]
        elif event["event"] == "error":
            self.errors.append(event["message"])
        self.on_event(event)

    def _close(self) -> None:
        """Release everything; keep what the supervisor wrote to its standard error."""
        self.kill()
        self.events.close()  # first: a supervisor whose events nobody reads would wait
        if self.process.wait() < 0:  # it was killed, and could end nothing
            from local_sagemaker.cluster.orphans import JOB_ENV, kill_orphans  # needs psutil

            kill_orphans(self.spec.hosts[0].env.get(JOB_ENV, self.spec.job))
        with self.stderr:
            self.stderr.seek(0)
            if text := self.stderr.read().strip():
                LOG.warning("%s: supervisor: %s", self.spec.job, text)
                self.errors.append(text)
