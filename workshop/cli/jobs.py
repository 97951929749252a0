"""workshop jobs, logs, stop: training jobs on the local endpoint."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

import boto3
import click
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from local_sagemaker import daemon
from workshop.cli.endpoint import client_environment

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
FINAL = ("Completed", "Failed", "Stopped")
POLL_SECONDS = 0.5


def client(service: str):
    """A boto3 client for the running endpoint, whatever the shell's variables say."""
    env = client_environment()
    for name in daemon.in_the_way(os.environ):
        del os.environ[name]
    return boto3.client(
        service,
        endpoint_url=env["AWS_ENDPOINT_URL"],
        region_name=env["AWS_DEFAULT_REGION"],
        aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
        config=Config(proxies={}),
    )


def describe(name: str) -> dict:
    with asking(name):
        return client("sagemaker").describe_training_job(TrainingJobName=name)


@contextlib.contextmanager
def asking(job: str) -> Iterator[None]:
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
        one
        for page in pages.paginate(SortBy="CreationTime", SortOrder="Descending")
        for one in page["TrainingJobSummaries"]
    ]
    if not rows:
        click.echo("No jobs yet.")
    for one in rows:
        end = one.get("TrainingEndTime")
        spent = f"{(end - one['CreationTime']).total_seconds():7.1f} s" if end else " " * 9
        created = one["CreationTime"].strftime("%Y-%m-%d %H:%M:%S")
        click.echo(f"{created}  {one['TrainingJobStatus']:<10} {spent}  {one['TrainingJobName']}")


@click.command()
@click.argument("job")
@click.option("--follow", "-f", is_flag=True, help="Go on until the job has ended.")
def logs(job, follow) -> None:
    """Print the log of JOB, each line with its host."""
    tokens: dict[str, str] = {}
    while True:
        ended = describe(job)["TrainingJobStatus"] in FINAL
        with asking(job):
            _print_new(job, tokens)
        if ended or not follow:
            break
        time.sleep(POLL_SECONDS)
    description = describe(job)
    if description["TrainingJobStatus"] in FINAL:
        reason = description.get("FailureReason")
        click.echo(f"{description['TrainingJobStatus']}{': ' + reason if reason else ''}")


def _print_new(job: str, tokens: dict[str, str]) -> None:
    reader = client("logs")
    try:
        found = reader.describe_log_streams(
            logGroupName=LOG_GROUP, logStreamNamePrefix=f"{job}/", limit=50
        )
    except reader.exceptions.ResourceNotFoundException:
        return
    for stream in found["logStreams"]:
        name = stream["logStreamName"]
        host = name.split("/")[-1].rpartition("-")[0]
        while True:
            more = {"nextToken": tokens[name]} if name in tokens else {}
            page = reader.get_log_events(
                logGroupName=LOG_GROUP, logStreamName=name, startFromHead=True, **more
            )
            for event in page["events"]:
                click.echo(f"{host}  {event['message']}")
            if tokens.get(name) == page["nextForwardToken"]:
                break
            tokens[name] = page["nextForwardToken"]


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
