"""workshop request: what fit() would send, shown and not sent."""

from __future__ import annotations

import json

import click

import local_sagemaker
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
    names = _names_of_stacks(target, seat) if stacks else {"region": region}
    jobs = previewed(lesson, target, seat, dict(map(parameter, given)), job, **names)
    if not jobs:
        click.echo(f"Lesson {lesson} starts no job on SageMaker.", err=True)
    requests = {previewed_job.name: previewed_job.request for previewed_job in jobs}
    click.echo(json.dumps(jobs[0].request if job else requests, indent=2))


def previewed(
    lesson: str, target: str, seat: str, values: dict, only: str | None = None, **names
) -> list:
    """The lesson's jobs as PreviewedJobs.

    values: of parameters. only: the name or number of one job. names: as preview_session takes
    them, and the network. Raises WrongUse for an unknown lesson, job or parameter, or a bad seat.
    """
    from workshop.jobs.job_preview import preview, preview_session
    from workshop.jobs.lesson_jobs import UnknownLesson, lesson_jobs
    from workshop.jobs.session import SessionError

    network = names.pop("network", None)
    if values.get("subnets") and values.get("security_group_ids"):
        network = {name: values[name] for name in ("subnets", "security_group_ids")}
    try:
        session = preview_session(target, seat, **names)
        jobs = lesson_jobs(lesson, values)
    except (UnknownLesson, SessionError) as error:
        raise WrongUse(str(error)) from error
    if only:
        numbered = dict(enumerate(jobs, 1))
        jobs = [job for number, job in numbered.items() if only in (job.name, str(number))]
        if not jobs:
            known = ", ".join(f"{number} {job.name!r}" for number, job in numbered.items())
            raise WrongUse(f"The lesson has no job {only!r}. It has: {known or 'none'}.")
    return preview(jobs, session, network)


def _names_of_stacks(target: str, seat: str) -> dict:
    """Region, outputs and network of the seat's stacks. Makes none, and starts no emulator."""
    from workshop.account.stacks import StackError, outputs
    from workshop.jobs.session import SessionError, session
    from workshop.jobs.vpc import network_from_stack

    try:
        if target == "local":
            local_sagemaker.environment_of_running()
        opened = session(target, seat)
        network = network_from_stack(opened)
        return {"region": opened.region, "outputs": outputs(opened), "network": network}
    except local_sagemaker.EmulatorError as error:
        raise click.ClickException(str(error)) from error
    except (SessionError, StackError) as error:
        raise WrongUse(str(error)) from error
