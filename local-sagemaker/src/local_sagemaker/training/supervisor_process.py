"""The script on one set of instances: the supervisor's process, from its start until it is gone."""

from __future__ import annotations

import contextlib
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from local_sagemaker.cluster.bandwidth import Links
from local_sagemaker.cluster.spec import ClusterSpec, Host
from local_sagemaker.training.connectivity import EVERYTHING, Reach
from local_sagemaker.training.job_log import JobLog
from local_sagemaker.training.job_record import JobRecord

LOG = logging.getLogger(__name__)
TRAIN = [sys.executable, "-m", "local_sagemaker.container.entrypoint"]
OVERDUE_SECONDS = 5.0  # after the grace period: then a job that was to stop is killed
# What a line raises that was cut off with the supervisor, or that a script has put into its pipe.
NOT_AN_EVENT = (ValueError, KeyError, TypeError, RecursionError)
Repeated = tuple[float, Callable[[], None]]  # seconds between two calls, what is called


@dataclass(frozen=True)
class ClusterOptions:
    """How a job's instances run.

    isolation: `namespaces` or `processes`. grace_seconds: from SIGTERM to SIGKILL.
    links: between instances; None for wide ones. reach: what instances reach.
    """

    isolation: str
    grace_seconds: float
    links: Links | None = None
    reach: Reach = EVERYTHING

    def cluster(self, record: JobRecord, hosts: list[Host], endpoint_port: int) -> ClusterSpec:
        """What a supervisor is told to run on `hosts`."""
        algorithm = record.request["AlgorithmSpecification"]
        own = [*algorithm.get("ContainerEntrypoint", []), *algorithm.get("ContainerArguments", [])]
        return ClusterSpec(
            job=record.name,
            isolation=self.isolation,
            hosts=hosts,
            command=[*TRAIN, *own],
            endpoint_port=endpoint_port,
            grace_seconds=self.grace_seconds,
            prefix=sys.prefix,
            links=self.links,
            proxy=self.reach.internet,
            closed=self.reach.closed,
            endpoint=self.reach.endpoint,
        )


class Training:
    """A running supervisor. When this process dies, its pipe closes and the job dies too.

    exits: (host, exit code) in the order of their ends. errors: the supervisor's own.
    """

    def __init__(self, spec: ClusterSpec, directory: Path, log: JobLog) -> None:
        self.job, self.log = spec.job, log
        self.exits: list[tuple[str, int]] = []
        self.errors: list[str] = []
        path = directory / "cluster.json"
        spec.write(path)
        self.lock = threading.Lock()
        self.overdue = threading.Timer(spec.grace_seconds + OVERDUE_SECONDS, self.kill)
        self.overdue.daemon = True
        self.said = (directory / "supervisor.log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "local_sagemaker.cluster.supervisor", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            start_new_session=True,  # Ctrl-C is for the emulator, which ends its jobs itself
        )

    @property
    def failed(self) -> tuple[str, int] | None:
        """The first instance that failed, and its exit code. The others were ended for it."""
        return next(((host, code) for host, code in self.exits if code != 0), None)

    def stop(self) -> None:
        """SIGTERM to every process of the job; SIGKILL after its grace period.

        A script that is a plain process can read the supervisor's pipe before the supervisor does.
        So the pipe is closed if the job outlives its grace period: nobody can take that away.
        """
        with self.lock:
            try:
                self.process.stdin.write(b"stop\n")
                self.process.stdin.flush()
            except (BrokenPipeError, ValueError):  # it has ended already
                return
            if self.overdue.ident is None:
                self.overdue.start()

    def kill(self) -> None:
        """End the job at once."""
        with self.lock:
            if not self.process.stdin.closed:
                self.process.stdin.close()

    def run(self, beside: list[Repeated]) -> None:
        """Wait until the instances are gone; do meanwhile what is to be done beside them."""
        over = threading.Event()
        helpers = [
            threading.Thread(target=_repeat, args=(over, *one), daemon=True) for one in beside
        ]
        for helper in helpers:
            helper.start()
        try:
            for line in self.process.stdout:
                with contextlib.suppress(*NOT_AN_EVENT):
                    self._on(json.loads(line))
            self.process.wait()
        finally:
            over.set()
            self._close()
            for helper in helpers:
                helper.join()

    def _on(self, event: dict) -> None:
        if event["event"] == "log":
            self.log.write(event["host"], event["time"], event["lines"])
        elif event["event"] == "exit":
            self.exits.append((event["host"], event["code"]))
        elif event["event"] == "error":
            self.errors.append(event["message"])

    def _close(self) -> None:
        """Release everything; keep what the supervisor wrote to its standard error."""
        self.overdue.cancel()
        self.kill()
        self.process.stdout.close()  # first: a supervisor whose events nobody reads would wait
        self.process.wait()
        with self.said:
            self.said.seek(0)
            if text := self.said.read().strip():
                LOG.warning("%s: supervisor: %s", self.job, text)
                self.errors.append(text)


def _repeat(over: threading.Event, seconds: float, call: Callable[[], None]) -> None:
    while not over.wait(seconds):
        call()
