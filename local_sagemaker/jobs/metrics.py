"""Metrics that SageMaker reads from a job's log with the request's regular expressions."""

from __future__ import annotations

import math
import re
import time

from local_sagemaker.jobs.aws import LocalAws
from local_sagemaker.server.errors import validation

NAMESPACE = "/aws/sagemaker/TrainingJobs"


class Metrics:
    """Finds metrics in log lines. values: name -> (value, Unix seconds) of the last one."""

    def __init__(self, request: dict) -> None:
        definitions = request["AlgorithmSpecification"].get("MetricDefinitions", [])
        self.patterns = [(one["Name"], re.compile(one["Regex"])) for one in definitions]
        self.values: dict[str, tuple[float, float]] = {}
        self.unsent: list[tuple[str, float, float]] = []

    def read(self, line: str) -> None:
        for name, pattern in self.patterns:
            for found in pattern.finditer(line):
                try:
                    value = float(found.group(1))
                except (ValueError, IndexError, TypeError):  # a group may match nothing
                    continue
                if not math.isfinite(value):  # CloudWatch takes no NaN and no infinity
                    continue
                now = time.time()
                self.values[name] = (value, now)
                self.unsent.append((name, value, now))

    def send(self, aws: LocalAws, region: str, job: str) -> None:
        """Put what was found since the last call into CloudWatch."""
        dimensions = [{"Name": "TrainingJobName", "Value": job}]
        data = [
            {"MetricName": name, "Value": value, "Timestamp": at, "Dimensions": dimensions}
            for name, value, at in self.unsent
        ]
        self.unsent.clear()
        for start in range(0, len(data), 500):
            aws.client("cloudwatch", region).put_metric_data(
                Namespace=NAMESPACE, MetricData=data[start : start + 500]
            )


def check(request: dict) -> None:
    """Refuse a metric definition whose regular expression is none, or has no group."""
    for one in request["AlgorithmSpecification"].get("MetricDefinitions", []):
        try:
            groups = re.compile(one["Regex"]).groups
        except re.error as error:
            raise validation(
                f"Regex '{one['Regex']}' of metric '{one['Name']}' is invalid: {error}"
            ) from error
        if groups < 1:
            raise validation(
                f"Regex '{one['Regex']}' of metric '{one['Name']}' has no group: put the number "
                "in parentheses, for example 'loss: ([0-9.]+)'."
            )
