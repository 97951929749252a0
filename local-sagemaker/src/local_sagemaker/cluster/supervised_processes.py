"""A supervisor, seen from the process that starts it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence

from local_sagemaker.cluster.spec import HOST_ENV, JOB_ENV, PROCESSES, ClusterSpec, Host

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
        with tempfile.TemporaryFile() as stream:
            pickle.dump(spec, stream)
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


def supervise(
    commands: Sequence[Sequence[str]],
    environments: Sequence[Mapping[str, str]],
    on_event: Callable[[dict], None],
    folder: str | None = None,
    descriptors: Sequence[Sequence[int]] | None = None,
    captured: bool = True,
) -> SupervisorProcess:
    """Start commands of this machine under a supervisor, which ends them and all that they started
    when it is told to, and when this process is gone, even killed.

    Their names in pids, statuses and events are "0", "1", ... Call the supervisor's `run`.
    environments: variables of each besides this process's own. folder: where they start.
    descriptors: file descriptors that each inherits. captured: what they print comes as events;
    otherwise it goes where this process's own output goes.
    """
    job = f"{os.getpid()}/{uuid.uuid4().hex}"
    hosts = [
        Host(
            name=str(index),
            directory="",
            env=os.environ | dict(environment) | {JOB_ENV: job, HOST_ENV: str(index)},
            command=list(command),
            folder=folder,
            descriptors=list(descriptors[index]) if descriptors else [],
            output=[] if captured else [os.dup(1), os.dup(2)],
        )
        for index, (command, environment) in enumerate(zip(commands, environments, strict=True))
    ]
    supervisor = SupervisorProcess(ClusterSpec(job, PROCESSES, hosts, [], together=False), on_event)
    for host in hosts:
        for number in host.output:
            os.close(number)
    return supervisor
