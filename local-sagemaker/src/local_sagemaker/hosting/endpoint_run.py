"""Keeps the worker of one endpoint running. One thread of the emulator for each."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping

import urllib3

from local_sagemaker.core import records
from local_sagemaker.core.aws import LocalAws
from local_sagemaker.core.records import Record
from local_sagemaker.core.s3_input import DataError
from local_sagemaker.hosting import model, worker
from local_sagemaker.storage.files import remove

LOG = logging.getLogger(__name__)
GROUP = "/aws/sagemaker/Endpoints/"
START_SECONDS = 480  # unless the variant has a ContainerStartupHealthCheckTimeoutInSeconds
# "A customer's model containers must respond to requests within 60 seconds": InvokeEndpoint in
# botocore's model of sagemaker-runtime, read 2026-11-21.
INVOCATION_SECONDS = 60.0
MAX_RESTARTS = 5
LONG_ENOUGH = 60.0  # a worker that ran for so long is no part of a series of crashes


class EndpointRun(worker.WorkerRun):
    """An endpoint's worker: started, watched, started again when it ends.

    seconds: the limit for one answer.
    """

    def __init__(self, record: Record, aws: LocalAws, seconds: float = INVOCATION_SECONDS) -> None:
        super().__init__(record, aws, "endpoint", GROUP + record.name)
        self.seconds = seconds
        self.ready = threading.Event()  # a worker answers
        self.settled = threading.Event()  # it is no longer being created

    def ask(self, body: bytes, headers: Mapping[str, str]) -> urllib3.BaseHTTPResponse:
        """Have the worker answer. Raises worker.NotTaken (there is none), TooSlow or Gone."""
        deadline = time.monotonic() + self.seconds
        while True:
            left = max(0.1, deadline - time.monotonic())
            if not self.ready.wait(left) or self.stopping.is_set() or self.worker is None:
                raise worker.NotTaken(self.record.name)
            running = self.worker
            try:
                return running.ask(body, headers, left)
            except worker.NotTaken:  # it ended a moment ago, and the next is on its way
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            except worker.TooSlow:
                if (self.directory / "model" / "code").is_dir():
                    # Its functions run one at a time: one that hangs holds up those after it.
                    self.log.log(f"no answer within {left:g} s: the worker is started again")
                    running.kill()
                raise

    def end(self) -> None:
        """End the worker, and wait until nothing is left of it."""
        self.kill()
        self.thread.join()

    def run(self) -> None:
        try:
            self._fetch()
            self._keep_serving()
        except DataError as error:
            self._fail(str(error))
        except Exception as error:
            self._fail(records.internal(self.record.name, error))
        finally:
            self.settled.set()

    def _fetch(self) -> None:
        """Unpack the model, unless an earlier process of the emulator has."""
        whole, partial = self.directory / "model", self.directory / "partial"
        if partial.is_dir():  # of a process that was killed
            remove(partial)
        if not whole.is_dir():
            try:
                model.fetch(self.aws, self.container, self.region, partial)
                partial.rename(whole)
            finally:
                if partial.is_dir():
                    remove(partial)

    def _keep_serving(self) -> None:
        crashes = 0
        while running := self._start():
            begun = time.monotonic()
            code = running.wait()
            self.ready.clear()
            running.close()
            if self.stopping.is_set():
                return
            crashes = 1 if time.monotonic() - begun > LONG_ENOUGH else crashes + 1
            if crashes > MAX_RESTARTS:
                self._fail(f"The worker ended {crashes} times, at last with exit code {code}.")
                return
            self.log.log(f"the worker ended (exit code {code}); started again, time {crashes}")

    def _start(self) -> worker.Worker | None:
        """Start a worker. None if it does not answer, or if the endpoint is to end."""
        variant = self.record.data["variant"]
        seconds = variant.get("ContainerStartupHealthCheckTimeoutInSeconds") or START_SECONDS
        try:
            if not self.start_worker(seconds):
                return None
        except worker.StartError as error:
            if self.worker:
                self.worker.close()
            # AWS's first sentences: https://github.com/aws/sagemaker-python-sdk/issues/155
            name = variant["VariantName"]
            self._fail(
                f"The primary container for production variant {name} did not pass the ping "
                f"health check. Please check CloudWatch logs for this endpoint. {error}"
            )
            return None
        self.record.set_status("InService")
        self.ready.set()
        self.settled.set()
        return self.worker

    def _fail(self, reason: str) -> None:
        LOG.warning("%s: %s", self.record.name, reason)
        if not self.stopping.is_set():
            self.record.set_status("Failed", reason)
