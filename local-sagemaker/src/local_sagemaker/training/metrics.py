"""Metrics that SageMaker reads from a job's log with the request's regular expressions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import regex

from local_sagemaker.core.aws import LocalAws
from local_sagemaker.moto_backend import logs
from local_sagemaker.protocol.errors import validation

LOG_GROUP = NAMESPACE = "/aws/sagemaker/TrainingJobs"
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
        self.unsent: list[tuple[str, float, float]] = []

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
            self.unsent.append((name, value, now))
        elif self.count == MAX_VALUES + 1:
            self.log(f"CloudWatch keeps the first {MAX_VALUES} metric values of a job here.")

    def send(self, aws: LocalAws, region: str, job: str) -> None:
        """Put what was found since the last call into CloudWatch."""
        dimensions = [{"Name": "TrainingJobName", "Value": job}]
        data = [
            {"MetricName": name, "Value": value, "Timestamp": at, "Dimensions": dimensions}
            for name, value, at in self.unsent
        ]
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
