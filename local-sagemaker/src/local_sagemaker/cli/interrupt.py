"""local-sagemaker interrupt: take a spot job's instances away, as AWS may."""

from __future__ import annotations

import time

import click
from botocore.exceptions import BotoCoreError, ClientError

from local_sagemaker import daemon
from local_sagemaker.cli.shared import WrongUse
from local_sagemaker.training import spot
from local_sagemaker.training.job_record import FINAL

POLL_SECONDS = 0.5


@click.command()
@click.argument("job")
def interrupt(job) -> None:
    """Interrupt JOB as AWS interrupts spot instances: SIGTERM, a grace period, SIGKILL.

    The job starts again on other instances, with the checkpoints that are in S3. A job that
    is not training yet is interrupted once it does. AWS has no such command: there it happens
    when AWS needs the instances.
    """
    try:
        sagemaker = daemon.client("sagemaker")
    except daemon.EmulatorError as error:
        raise click.ClickException(str(error)) from error
    description = _describe(sagemaker, job)
    if description["TrainingJobStatus"] in FINAL:
        raise WrongUse(f"{job} has ended already: {description['TrainingJobStatus']}.")
    if not description["EnableManagedSpotTraining"]:
        raise WrongUse(
            f"{job} has no spot instances, and others are not taken away. Start it with "
            "use_spot_instances=True and max_wait=..., or end it with StopTrainingJob."
        )
    before = _interruptions(description)
    try:
        spot.ask(daemon.state_directory(), job)
    except OSError as error:
        raise click.ClickException(f"Job {job} cannot be told: {error.strerror}.") from error
    while _interruptions(description) == before:
        if description["TrainingJobStatus"] in FINAL:
            raise click.ClickException(f"{job} ended first: {description['TrainingJobStatus']}.")
        time.sleep(POLL_SECONDS)
        description = _describe(sagemaker, job)
    click.echo(f"{job}: Interrupted; it starts again.")


def _describe(sagemaker, name: str) -> dict:
    """DescribeTrainingJob's answer; an error becomes a ClickException."""
    try:
        return sagemaker.describe_training_job(TrainingJobName=name)
    except (ClientError, BotoCoreError) as error:
        text = f"Job {name}: {error} `aws sagemaker list-training-jobs` lists the jobs."
        raise click.ClickException(text) from error


def _interruptions(description: dict) -> int:
    transitions = description["SecondaryStatusTransitions"]
    return sum(transition["Status"] == "Interrupted" for transition in transitions)
