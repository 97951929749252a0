"""workshop jobs, logs, stop: training jobs on the emulator."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import click
from botocore.exceptions import BotoCoreError, ClientError

import local_sagemaker
from workshop.jobs.follow import FINAL
from workshop.jobs.logs import LogReader

POLL_SECONDS = 0.5


def client(service: str):
    """A boto3 client for the running emulator. Raises ClickException if it is down."""
    try:
        return local_sagemaker.client(service)
    except local_sagemaker.EmulatorError as error:
        raise click.ClickException(str(error)) from error


def describe(name: str) -> dict:
    """DescribeTrainingJob's answer; a refusal, or no answer, becomes a sentence."""
    with answered(name):
        return client("sagemaker").describe_training_job(TrainingJobName=name)


@contextlib.contextmanager
def answered(job: str) -> Iterator[None]:
    """A refusal, or no answer, becomes a sentence."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise click.ClickException(f"Job {job}: {error}. `workshop jobs` lists them.") from error


@click.command()
def jobs() -> None:
    """List training jobs, the newest first."""
    pages = client("sagemaker").get_paginator("list_training_jobs")
    rows = [
        job
        for page in pages.paginate(SortBy="CreationTime", SortOrder="Descending")
        for job in page["TrainingJobSummaries"]
    ]
    if not rows:
        click.echo("No jobs yet.")
    for job in rows:
        end = job.get("TrainingEndTime")
        spent = f"{(end - job['CreationTime']).total_seconds():7.1f} s" if end else " " * 9
        created = job["CreationTime"].strftime("%Y-%m-%d %H:%M:%S")
        click.echo(f"{created}  {job['TrainingJobStatus']:<10} {spent}  {job['TrainingJobName']}")


@click.command()
@click.argument("job")
@click.option("--follow", "-f", is_flag=True, help="Keep printing until the job has ended.")
def logs(job, follow) -> None:
    """Print the log of JOB, each line with its host."""
    reader = LogReader(client("logs"), job)
    while True:
        ended = describe(job)["TrainingJobStatus"] in FINAL
        with answered(job):
            for line in reader.new_messages():
                click.echo("  ".join(line))
        if ended or not follow:
            break
        time.sleep(POLL_SECONDS)
    description = describe(job)
    if description["TrainingJobStatus"] in FINAL:
        reason = description.get("FailureReason")
        click.echo(f"{description['TrainingJobStatus']}{': ' + reason if reason else ''}")


@click.command()
@click.argument("job")
def stop(job) -> None:
    """Stop JOB: SIGTERM, a grace period, SIGKILL; what it has saved is uploaded."""
    status = describe(job)["TrainingJobStatus"]
    if status in FINAL:
        click.echo(f"{job} has ended already: {status}")
        return
    try:
        client("sagemaker").stop_training_job(TrainingJobName=job)
    except ClientError as error:
        if describe(job)["TrainingJobStatus"] not in FINAL:  # else it ended just now
            raise click.ClickException(f"Job {job}: {error}") from error
    while (status := describe(job)["TrainingJobStatus"]) not in FINAL:
        time.sleep(POLL_SECONDS)
    click.echo(f"{job}: {status}")
