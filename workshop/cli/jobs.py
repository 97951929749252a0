"""workshop stop: a training job on the emulator. `jobs` and `logs` are those of local-sagemaker."""

from __future__ import annotations

import time

import click
from botocore.exceptions import BotoCoreError, ClientError

import local_sagemaker
from workshop.jobs.follow import FINAL

POLL_SECONDS = 0.5


def status_of(job: str) -> str:
    """TrainingJobStatus; a refusal, or no answer, becomes a sentence."""
    try:
        api = local_sagemaker.client("sagemaker")
        return api.describe_training_job(TrainingJobName=job)["TrainingJobStatus"]
    except (ClientError, BotoCoreError) as error:
        raise click.ClickException(f"Job {job}: {error} `workshop jobs` lists them.") from error


@click.command()
@click.argument("job")
def stop(job) -> None:
    """Stop JOB: SIGTERM, a grace period, SIGKILL; what it has saved is uploaded."""
    status = status_of(job)
    if status in FINAL:
        click.echo(f"{job} has ended already: {status}")
        return
    try:
        local_sagemaker.client("sagemaker").stop_training_job(TrainingJobName=job)
    except ClientError as error:
        if status_of(job) not in FINAL:  # else it ended just now
            raise click.ClickException(f"Job {job}: {error}") from error
    while (status := status_of(job)) not in FINAL:
        time.sleep(POLL_SECONDS)
    click.echo(f"{job}: {status}")
