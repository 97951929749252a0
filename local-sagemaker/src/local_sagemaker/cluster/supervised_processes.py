"""Commands of this machine that start together, end together, and leave no process behind."""

from __future__ import annotations

import dataclasses
import os
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence

from local_sagemaker.cluster.orphans import HOST_ENV, JOB_ENV
from local_sagemaker.cluster.spec import PROCESSES, ClusterSpec, Host
from local_sagemaker.cluster.supervisor_process import SupervisorProcess

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
