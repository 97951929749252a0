"""The script on one set of instances, from its start until its last process is gone."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from local_sagemaker.cluster.spec import ClusterSpec
from local_sagemaker.jobs.cluster_process import ClusterProcess
from local_sagemaker.jobs.log import JobLog

LOG = logging.getLogger(__name__)
Repeated = tuple[float, Callable[[], None]]  # seconds between two calls, what is called


class Training:
    """exits: (host, exit code) in the order of their ends. errors: the supervisor's own."""

    def __init__(self, spec: ClusterSpec, directory: Path, log: JobLog) -> None:
        self.cluster = ClusterProcess(spec, directory)
        self.job, self.log = spec.job, log
        self.exits: list[tuple[str, int]] = []
        self.errors: list[str] = []

    @property
    def failed(self) -> tuple[str, int] | None:
        """The first instance that failed, and its exit code. The others were ended for it."""
        return next(((host, code) for host, code in self.exits if code != 0), None)

    def run(self, beside: list[Repeated]) -> None:
        """Wait until the instances are gone; do meanwhile what is to be done beside them."""
        over = threading.Event()
        helpers = [
            threading.Thread(target=_repeat, args=(over, *one), daemon=True) for one in beside
        ]
        for helper in helpers:
            helper.start()
        try:
            for event in self.cluster.events():
                self._on(event)
        finally:
            over.set()
            said = self.cluster.close()
            for helper in helpers:
                helper.join()
        if said:
            LOG.warning("%s: supervisor: %s", self.job, said)
            self.errors.append(said)

    def _on(self, event: dict) -> None:
        if event["event"] == "log":
            self.log.write(event["host"], event["time"], event["lines"])
        elif event["event"] == "exit":
            self.exits.append((event["host"], event["code"]))
        elif event["event"] == "error":
            self.errors.append(event["message"])


def _repeat(over: threading.Event, seconds: float, call: Callable[[], None]) -> None:
    while not over.wait(seconds):
        call()
