"""Log streams in CloudWatch: those of a training job, and that of a worker which serves a model."""

from __future__ import annotations

import logging
import time

from local_sagemaker.jobs.aws import AWS_ERRORS, LocalAws
from local_sagemaker.jobs.metrics import Metrics
from local_sagemaker.jobs.record import JobRecord

LOG = logging.getLogger(__name__)


class JobLog:
    """One log stream for each instance, `JOB/HOST-SECONDS`, as SageMaker names them."""

    def __init__(self, aws: LocalAws, record: JobRecord) -> None:
        self.aws, self.job, self.region = aws, record.name, record.data["region"]
        self.metrics = Metrics(record.request, note=lambda text: self.say("algo-1", text))
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

    def say(self, host: str, line: str) -> None:
        """Add a line of the emulator's own, marked as such."""
        self.aws.write_log(self.region, self._stream(host), _now_ms(), [f"[local] {line}"])

    def begin_again(self) -> None:
        """From now on streams of their own, for the instances of the next try."""
        self.started_at = max(int(time.time()), self.started_at + 1)

    def _stream(self, host: str) -> str:
        return f"{self.job}/{host}-{self.started_at}"


class StreamLog:
    """A stream of a group; both are made with the first line, as on AWS."""

    def __init__(self, aws: LocalAws, region: str, group: str, stream: str) -> None:
        self.aws, self.region, self.group, self.stream = aws, region, group, stream
        self.opened = False

    def say(self, lines: list[str]) -> None:
        """Add lines. What CloudWatch refuses is noted in the emulator's own log."""
        try:
            if not self.opened:
                self.aws.open_log(self.region, self.stream, self.group)
                self.opened = True
            self.aws.write_log(self.region, self.stream, _now_ms(), lines, self.group)
        except AWS_ERRORS as error:
            LOG.warning("%s/%s: %s", self.group, self.stream, error)

    def note(self, text: str) -> None:
        """Add a line of the emulator's own."""
        self.say([f"[local] {text}"])


def _now_ms() -> int:
    return int(time.time() * 1000)
