"""`workshop.follow`, `workshop.run_jobs`: watch training jobs until they end, as JobResults."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from workshop.jobs.logs import Line, LogReader
from workshop.output import Progress, event_table, records

if TYPE_CHECKING:
    import pandas as pd

    from workshop.jobs.session import Session

FINAL = ("Completed", "Failed", "Stopped")
POLL_SECONDS = {True: 0.2, False: 5.0}  # local; AWS, which limits how often one may ask
# The log takes several calls, one for each instance's stream; here they would take a few per cent
# of a core from the job that they watch.
LOG_SECONDS = 1.0
LAST_LINES = 12


class JobFailed(Exception):
    """A job did not complete; the message has its FailureReason and its log's last lines."""


def follow(job, session: Session | None = None, check: bool = True) -> JobResult:
    """Show a job's progress until it ends, then its outcome.

    Args:
        job: an estimator after `fit(..., wait=False)`, or a job's name.
        session: what workshop.session returned; an estimator brings its own.
        check: raise JobFailed for a job that did not complete.

    An interrupt (the stop button, Ctrl-C) ends the watching and not the job.
    """
    with Progress() as progress:
        result = watch(job, progress.update, session)
        progress.finish(result.summary())
    if check and result.status != "Completed":
        raise JobFailed(result.failure_reason())
    return result


def run_jobs(
    estimators: Mapping[str, Any], channels: Mapping | None = None
) -> dict[str, JobResult]:
    """Run jobs one after the other, with their progress and a line for each that has ended.

    Never two at once: on one machine they would take each other's cores, and every time that
    they measure would be wrong.

    Args:
        estimators: name -> an estimator that has no job yet.
        channels: what every one's `fit` gets.

    Returns:
        name -> JobResult.

    Raises:
        JobFailed: one did not complete; those after it are not started.
    """
    lines: list[str] = []
    results: dict[str, JobResult] = {}
    width = max(map(len, estimators), default=0)
    with Progress() as progress:
        for name, estimator in estimators.items():

            def show(state: str, name: str = name) -> None:
                progress.update("\n".join([*lines, f"{name:<{width}}  {state}"]))

            show("is requested")
            estimator.fit(channels, wait=False)
            result = results[name] = watch(estimator, show)
            if result.status != "Completed":
                progress.finish("\n".join([*lines, f"{name:<{width}}  {result.status}"]))
                raise JobFailed(
                    f"{name}: {result.failure_reason()}{_not_started(estimators, results)}"
                )
            lines.append(f"{name:<{width}}  {_in_a_line(result)}")
        progress.finish("\n".join(lines))
    return results


def watch(job, show: Callable[[str], None], session: Session | None = None) -> JobResult:
    """Wait for a job's end. show: called repeatedly with one line of progress.

    job, session: as for `follow`, which shows the end as well.
    """
    name, boto_session = _resolve(job, session)
    client = boto_session.client("sagemaker")
    reader, lines = LogReader(boto_session.client("logs"), name), []
    poll = POLL_SECONDS["127.0.0.1" in client.meta.endpoint_url]
    began = time.monotonic()
    log_at = began
    try:
        while True:
            description = client.describe_training_job(TrainingJobName=name)
            ended = description["TrainingJobStatus"] in FINAL
            if ended or time.monotonic() >= log_at:
                lines += reader.new_lines()
                log_at = time.monotonic() + LOG_SECONDS
                show(_progress(description, time.monotonic() - began, lines))
            if ended:
                break
            time.sleep(poll)
        lines += _late_lines(reader, poll)
    except KeyboardInterrupt:
        show(f"{name} keeps running, unwatched. To end it: workshop stop {name}")
        raise
    return JobResult(name, description, lines)


def _in_a_line(result: JobResult) -> str:
    training = result.phases.get("Training", 0.0)
    state = f"{result.status}, training {training:.1f} s"
    return f"{state}, billable {result.billable_seconds} s x {result.instance_count} instance(s)"


def _not_started(estimators: Mapping, results: Mapping) -> str:
    rest = [name for name in estimators if name not in results]
    return f"\nNot started after it: {', '.join(rest)}." if rest else ""


def _resolve(job, session: Session | None) -> tuple[str, Any]:
    if isinstance(job, str):
        if session is None:
            raise ValueError(
                f"follow({job!r}) needs the session too: follow({job!r}, session). With an "
                "estimator in place of the name it does not."
            )
        return job, session.boto_session
    latest = getattr(job, "latest_training_job", None)
    if latest is None:
        raise ValueError("This estimator has no job yet: call its fit(channels, wait=False) first.")
    return latest.name, job.sagemaker_session.boto_session


def _late_lines(reader: LogReader, poll: float) -> list[Line]:
    """Lines that reach the log after the job's end: CloudWatch may be seconds behind."""
    lines: list[Line] = []
    for _ in range(3):
        new = reader.new_lines()
        lines += new
        if poll < 1 and not new:
            break
        time.sleep(poll)
    return lines


def _progress(description: dict, seconds: float, lines: list[Line]) -> str:
    last = next((str(line) for line in reversed(lines) if line.text.strip()), "no log yet")
    return f"{description['SecondaryStatus']}, {seconds:.0f} s | {last[:110]}"


@dataclass
class JobResult:
    """A job that has ended. description: DescribeTrainingJob's answer. lines: its whole log."""

    name: str
    description: dict = field(repr=False)
    lines: list[Line] = field(repr=False)

    @property
    def status(self) -> str:
        """Completed, Failed or Stopped."""
        return self.description["TrainingJobStatus"]

    @property
    def instance_count(self) -> int:
        """How many instances it had."""
        return self.description["ResourceConfig"]["InstanceCount"]

    @property
    def phases(self) -> dict[str, float]:
        """Phase -> seconds, in order. Repeated phases are summed."""
        phases: dict[str, float] = {}
        for phase in self.description["SecondaryStatusTransitions"]:
            if "EndTime" in phase and (name := phase["Status"]) not in FINAL:
                seconds = (phase["EndTime"] - phase["StartTime"]).total_seconds()
                phases[name] = phases.get(name, 0.0) + seconds
        return phases

    @property
    def billable_seconds(self) -> int:
        """Seconds per instance that AWS would bill; 0 if the job never started."""
        return self.description.get("BillableTimeInSeconds", 0)

    @property
    def metrics(self) -> dict[str, float]:
        """The last value of each metric of the job.

        SageMaker reads them from the log, and may still lack some when the job has just ended on
        AWS. Those are read from the log here, in the same way.
        """
        specification = self.description.get("AlgorithmSpecification", {})
        in_log = {
            metric["Name"]: float(match[1])
            for metric in specification.get("MetricDefinitions", [])
            for line in self.lines
            if (match := re.search(metric["Regex"], line.text))
        }
        final = self.description.get("FinalMetricDataList", [])
        return in_log | {metric["MetricName"]: metric["Value"] for metric in final}

    @property
    def model(self) -> str:
        """S3 address of model.tar.gz; empty if the job left none."""
        return self.description.get("ModelArtifacts", {}).get("S3ModelArtifacts", "")

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """The hyperparameters of the request, decoded from JSON."""
        return {
            key: _decoded(value)
            for key, value in self.description.get("HyperParameters", {}).items()
        }

    @cached_property
    def events(self) -> list[dict]:
        """The script's JSON records, each with host and rank, in the order of the log."""
        return records(self.lines)

    def table(self, event: str) -> pd.DataFrame:
        """The records of one kind ("start", "step", "epoch", "weights") as a pandas table."""
        return event_table(self.events, event, self.name)

    def matching(self, text: str) -> list[Line]:
        """The log's lines that contain `text`."""
        return [line for line in self.lines if text in line.text]

    def summary(self) -> str:
        """Status, seconds and metrics in a few lines."""
        phases = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self.phases.items())
        metrics = ", ".join(f"{name} {_shown(value)}" for name, value in self.metrics.items())
        count = self.description.get("ResourceConfig", {}).get("InstanceCount", 1)
        return "\n".join(
            [
                f"{self.name}: {self.status}",
                f"phases:   {phases}",
                f"billable: {self.billable_seconds} s x {count} instance(s)",
                f"metrics:  {metrics or 'none'}",
            ]
        )

    def failure_reason(self) -> str:
        """Why it did not complete, with the last lines of its log."""
        reason = self.description.get("FailureReason") or self.description["SecondaryStatus"]
        last = [str(line) for line in self.lines if line.text.strip()][-LAST_LINES:]
        return "\n".join([f"{self.name}: {self.status}. {reason}", "Its log's last lines:", *last])


def _shown(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _decoded(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value
