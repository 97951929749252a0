"""A training job's log streams in CloudWatch."""

from __future__ import annotations

import time

from local_sagemaker.core.aws import LocalAws
from local_sagemaker.core.log_stream import now_ms
from local_sagemaker.training.job_record import JobRecord
from local_sagemaker.training.metrics import Metrics


class JobLog:
    """One log stream for each instance, `JOB/HOST-SECONDS`, as SageMaker names them."""

    def __init__(self, aws: LocalAws, record: JobRecord) -> None:
        self.aws, self.job, self.region = aws, record.name, record.data["region"]
        self.metrics = Metrics(record.request, log=lambda message: self.log("algo-1", message))
        self.started_at = int(time.time())

    def open(self, hosts: list[str]) -> None:
        for host in hosts:
            self.aws.open_log(self.region, self._stream(host))

    def write(self, host: str, time_ms: int, lines: list[str]) -> None:
        """Add an instance's lines. time_ms: Unix milliseconds."""
        self.aws.write_log(self.region, self._stream(host), time_ms, lines)
        for line in lines:
            self.metrics.read(line)
        self.metrics.send(self.aws, self.region, self.job)

    def log(self, host: str, message: str) -> None:
        """Add a line of the emulator's own, marked as such."""
        self.aws.write_log(self.region, self._stream(host), now_ms(), [f"[local] {message}"])

    def begin_again(self) -> None:
        """From now on streams of their own, for the instances of the next try."""
        self.started_at = max(int(time.time()), self.started_at + 1)

    def _stream(self, host: str) -> str:
        return f"{self.job}/{host}-{self.started_at}"
