"""A training job's log streams in CloudWatch."""

from __future__ import annotations

import time

from local_sagemaker.core.aws import LocalAws
from local_sagemaker.core.log_stream import StreamLog
from local_sagemaker.training.job_record import JobRecord
from local_sagemaker.training.metrics import LOG_GROUP, Metrics


class JobLog:
    """One log stream for each instance, `JOB/HOST-SECONDS`, as SageMaker names them."""

    def __init__(self, aws: LocalAws, record: JobRecord) -> None:
        self.aws, self.job, self.region = aws, record.name, record.region
        self.metrics = Metrics(record.request, log=lambda message: self.log("algo-1", message))
        self.streams: dict[str, StreamLog] = {}
        self.started_at = 0

    def open(self, hosts: list[str]) -> None:
        """Streams of their own for these instances, which are new."""
        self.started_at = max(int(time.time()), self.started_at + 1)
        for host in hosts:
            name = f"{self.job}/{host}-{self.started_at}"
            self.streams[host] = StreamLog(self.aws, self.region, LOG_GROUP, name)
            self.streams[host].open()

    def write(self, host: str, time_ms: int, lines: list[str]) -> None:
        """Add an instance's lines. time_ms: Unix milliseconds."""
        self.streams[host].write(lines, time_ms)
        for line in lines:
            self.metrics.read(line)
        self.metrics.send(self.aws, self.region, self.job)

    def log(self, host: str, message: str) -> None:
        """Add a line of the emulator's own, marked as such."""
        self.streams[host].log(message)
