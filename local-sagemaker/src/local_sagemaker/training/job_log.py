"""A training job's log streams in CloudWatch, and the metrics that are read from their lines."""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import Callable

import regex

from local_sagemaker.core.aws import LocalAws
from local_sagemaker.job_events import LOG_GROUP
from local_sagemaker.moto_backend import logs
from local_sagemaker.protocol.errors import validation
from local_sagemaker.training.job_record import JobRecord


class JobLog:
    """One log stream for each instance, `JOB/HOST-SECONDS`, as SageMaker names them."""

    def __init__(self, aws: LocalAws, record: JobRecord) -> None:
        self.aws, self.job, self.region = aws, record.name, record.region
        self.metrics = Metrics(record.request, log=lambda message: self.log("algo-1", message))
        self.streams: dict[str, logs.StreamLog] = {}
        self.started_at = 0

    def open(self, hosts: list[str]) -> None:
        """Streams of their own for these instances, which are new."""
        self.started_at = max(int(time.time()), self.started_at + 1)
        for host in hosts:
            name = f"{self.job}/{host}-{self.started_at}"
            self.streams[host] = logs.StreamLog(self.aws.state, self.region, LOG_GROUP, name)
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


NAMESPACE = "/aws/sagemaker/TrainingJobs"
# Seconds for one expression on one line: "(a|aa)+$" on sixty letters could take years.
MATCH_SECONDS = 0.25
MAX_VALUES = 100_000  # of one job that go into CloudWatch


class Metrics:
    """Finds metrics in log lines. values: name -> (value, Unix seconds) of the last one.

    log: called with a message about what is not read any more.
    """

    def __init__(self, request: dict, log: Callable[[str], None] = lambda _: None) -> None:
        definitions = request["AlgorithmSpecification"].get("MetricDefinitions", [])
        self.patterns = {row["Name"]: regex.compile(row["Regex"]) for row in definitions}
        self.log, self.count = log, 0
        self.values: dict[str, tuple[float, float]] = {}
        self.unsent: list[dict] = []

    def read(self, line: str) -> None:
        for name, pattern in list(self.patterns.items()):
            try:
                # concurrent: other threads, and so all other requests, run meanwhile
                for match in pattern.finditer(line, timeout=MATCH_SECONDS, concurrent=True):
                    self._keep(name, match)
            except TimeoutError:
                del self.patterns[name]
                self.log(
                    f"metric {name}: its regular expression took over {MATCH_SECONDS} s on one "
                    "line, so it is not read any more. Repeated alternatives that begin alike, "
                    "such as (a|aa)+, do that."
                )

    def _keep(self, name: str, match: regex.Match) -> None:
        try:
            value = float(match.group(1))
        except (ValueError, IndexError, TypeError):  # a group may match nothing
            return
        if not math.isfinite(value):  # CloudWatch takes no NaN and no infinity
            return
        now = time.time()
        self.values[name] = (value, now)
        self.count += 1
        if self.count <= MAX_VALUES:
            at = datetime.datetime.fromtimestamp(now, datetime.UTC).replace(tzinfo=None)
            self.unsent.append({"MetricName": name, "Value": value, "Timestamp": at})
        elif self.count == MAX_VALUES + 1:
            self.log(f"CloudWatch keeps the first {MAX_VALUES} metric values of a job here.")

    def send(self, aws: LocalAws, region: str, job: str) -> None:
        """Put what was found since the last call into CloudWatch."""
        dimensions = [{"Name": "TrainingJobName", "Value": job}]
        data = [datum | {"Dimensions": dimensions} for datum in self.unsent]
        self.unsent.clear()
        if aws.state and data:
            logs.put_metrics(region, NAMESPACE, data)


def check(request: dict) -> None:
    """Refuse a metric definition whose regular expression is invalid or has no group."""
    for definition in request["AlgorithmSpecification"].get("MetricDefinitions", []):
        metric = f"Regex '{definition['Regex']}' of metric '{definition['Name']}'"
        try:
            groups = regex.compile(definition["Regex"]).groups
        except regex.error as error:
            raise validation(f"{metric} is invalid: {error}") from error
        if groups < 1:
            raise validation(
                f"{metric} has no group: put the number in parentheses, for example "
                "'loss: ([0-9.]+)'."
            )
