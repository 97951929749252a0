"""workshop interrupt: take a spot job's instances away, as AWS does when it needs them."""

from __future__ import annotations

import time

import click

from local_sagemaker import daemon
from local_sagemaker.jobs import spot
from workshop.cli.jobs import FINAL, POLL_SECONDS, describe
from workshop.cli.shared import WrongUse


@click.command()
@click.argument("job")
def interrupt(job) -> None:
    """Take the spot instances of JOB away: SIGTERM, a grace period, SIGKILL.

    The job starts again on other instances, with the checkpoints that are in S3. One that does
    not train yet is interrupted when it does. AWS gives no such command: there it happens when
    AWS needs the instances.
    """
    description = describe(job)
    if description["TrainingJobStatus"] in FINAL:
        raise WrongUse(f"{job} has ended already: {description['TrainingJobStatus']}.")
    if not description["EnableManagedSpotTraining"]:
        raise WrongUse(
            f"{job} has no spot instances, and others are not taken away. Start it with "
            "use_spot_instances=True and max_wait=..., or end it with `workshop stop`."
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
        description = describe(job)
    click.echo(f"{job}: Interrupted; it starts again.")


def _interruptions(description: dict) -> int:
    return sum(one["Status"] == "Interrupted" for one in description["SecondaryStatusTransitions"])
