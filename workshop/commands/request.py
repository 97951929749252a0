"""workshop request: what fit() would send, shown and not sent."""

from __future__ import annotations

import json

import click

from workshop.commands.run import parameter


class WrongUse(click.ClickException):
    """A message and exit status 2: nothing is broken, what was asked for is not there."""

    exit_code = 2


@click.command()
@click.argument("lesson")
@click.argument("job", required=False)
@click.option("--target", type=click.Choice(["local", "aws"]), default="local", show_default=True)
@click.option("--seat", default="me", show_default=True)
@click.option("--region", default="", help="For --target aws. Default: your shell's, or us-east-1.")
@click.option("-p", "given", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option(
    "--stacks", is_flag=True, help="Ask for the names of your bucket and role, and use them."
)
def request(lesson, job, target, seat, region, given, stacks) -> None:
    """Print the CreateTrainingJob requests of a LESSON's jobs as JSON. Sends nothing.

    JOB is a job's name, or its number from 1; without it: all, by name. With --stacks it is
    exactly your own request. Otherwise bucket, role and network have placeholders, and neither
    credentials nor a running endpoint are needed.
    """
    found = {
        one.name: one.request
        for one in built(lesson, target, seat, region, dict(map(parameter, given)), stacks)
    }
    if not found:
        click.echo(f"Lesson {lesson} starts no job on SageMaker.", err=True)
    click.echo(json.dumps(found[_chosen(job, list(found))] if job else found, indent=2))


def built(lesson: str, target: str, seat: str, region: str, given: dict, stacks: bool):
    """The lesson's jobs, built. Raises WrongUse if they cannot be."""
    from workshop.notebooks.lessons import NoSuchLesson
    from workshop.requests import CannotBuild, build, recording_session
    from workshop.sessions import SessionError
    from workshop.stacks import StackError

    try:
        outputs = _outputs(target, seat) if stacks else None
        opened = recording_session(target, seat, region, outputs)
        return build(lesson, target, given, opened)
    except (NoSuchLesson, CannotBuild, SessionError, StackError) as error:
        raise WrongUse(str(error)) from error


def _outputs(target: str, seat: str) -> dict[str, str]:
    """Of the seat's stacks, as they are. Makes none, and starts no endpoint."""
    from workshop import stacks
    from workshop.commands.endpoint import client_environment
    from workshop.sessions import session

    if target == "local":
        client_environment()  # raises if the endpoint is down
    return stacks.outputs(session(target, seat))


def _chosen(job: str, names: list[str]) -> str:
    if job in names:
        return job
    if job.isdecimal() and 1 <= int(job) <= len(names):
        return names[int(job) - 1]
    listed = ", ".join(f"{number} {name!r}" for number, name in enumerate(names, 1))
    raise WrongUse(f"The lesson has no job {job!r}. It has: {listed or 'none'}.")
