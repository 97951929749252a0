"""workshop request: what fit() would send, shown and not sent."""

from __future__ import annotations

import json

import click

from workshop.cli.run import parameter
from workshop.cli.shared import WrongUse, seat_option, target_option


@click.command()
@click.argument("lesson")
@click.argument("job", required=False)
@target_option
@seat_option
@click.option("--region", default="", help="For --target aws. Default: your shell's, or us-east-1.")
@click.option("-p", "given", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option("--stacks", is_flag=True, help="Look up your stacks, and use their names.")
def request(lesson, job, target, seat, region, given, stacks) -> None:
    """Print the CreateTrainingJob requests of a LESSON's jobs as JSON. Sends nothing.

    JOB is a job's name, or its number from 1; without it: all, by name. With --stacks it is
    exactly your own request. Otherwise bucket, role and network have placeholders, and neither
    credentials nor a running emulator are needed.
    """
    names = _stack_names(target, seat) if stacks else {"region": region}
    jobs = previewed(lesson, target, seat, dict(map(parameter, given)), only=job, **names)
    requests = {row.name: row.request for row in jobs}
    if not requests:
        click.echo(f"Lesson {lesson} starts no job on SageMaker.", err=True)
    click.echo(json.dumps(jobs[0].request if job else requests, indent=2))


def previewed(
    lesson: str, target: str, seat: str, given: dict, network=None, only=None, **names
) -> list:
    """The lesson's jobs as PreviewedJobs.

    given: parameters. only: the name or number of one job. names: as preview_session takes them.
    Raises WrongUse for a lesson, a job, a parameter or a seat that cannot be.
    """
    from workshop.jobs.job_preview import preview, preview_session
    from workshop.jobs.lesson_jobs import UnknownLesson, lesson_jobs
    from workshop.jobs.session import SessionError

    ids = {key: given[key] for key in ("subnets", "security_group_ids") if given.get(key)}
    network = ids if len(ids) == 2 else network
    try:
        session = preview_session(target, seat, **names)
        jobs = lesson_jobs(lesson, given)
        return preview([_chosen(only, jobs)] if only else jobs, session, network)
    except (UnknownLesson, SessionError) as error:
        raise WrongUse(str(error)) from error


def _stack_names(target: str, seat: str) -> dict:
    """The names of the seat's stacks. Makes none, and starts no emulator."""
    import local_sagemaker
    from workshop.account.stacks import StackError, outputs
    from workshop.jobs.session import SessionError, session
    from workshop.jobs.vpc import network_from_stack

    try:
        if target == "local":
            local_sagemaker.environment_of_running()
    except local_sagemaker.EmulatorError as error:
        raise click.ClickException(str(error)) from error
    try:
        opened = session(target, seat)
        network = network_from_stack(opened)
        return {"region": opened.region, "outputs": outputs(opened), "network": network}
    except (SessionError, StackError) as error:
        raise WrongUse(str(error)) from error


def _chosen(choice: str, jobs: list):
    """The job of this name, or of this number from 1. Raises WrongUse."""
    for number, job in enumerate(jobs, 1):
        if choice in (job.name, str(number)):
            return job
    listed = ", ".join(f"{number} {job.name!r}" for number, job in enumerate(jobs, 1))
    raise WrongUse(f"The lesson has no job {choice!r}. It has: {listed or 'none'}.")
