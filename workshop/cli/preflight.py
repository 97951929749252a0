"""workshop preflight: is a job right, before anything is spent?"""

from __future__ import annotations

import contextlib
import dataclasses

import click

from workshop.cli.run import parameter
from workshop.cli.shared import WrongUse, opened

MARKS = {True: ("OK", "green"), False: ("NO", "red"), None: ("?", "yellow")}


@click.command()
@click.argument("lesson")
@click.option("--target", type=click.Choice(["aws", "local"]), default="aws", show_default=True)
@click.option("--seat", default="me", show_default=True, help="The seat whose network is used.")
@click.option("--offline", is_flag=True, help="Ask AWS nothing; check the rest.")
@click.option("-p", "given", multiple=True, metavar="NAME=VALUE", help="A parameter of LESSON.")
def preflight(lesson, target, seat, offline, given) -> None:
    """Check all jobs of LESSON (00, 05...).

    Creates nothing and starts nothing. Exit status 0 if no problem was found; 2 if there is one,
    or if AWS can't be asked. To check a job of your own, use Python:
    preflight.check(preflight.JobConfiguration.from_estimator(estimator)).
    """
    from workshop.account import preflight as checks

    with contextlib.nullcontext() if offline else opened(target, seat) as session:
        jobs = _lesson_jobs(lesson, seat, session, given)
        checked = [
            (str(job), checks.check(job) + (_ask(job, session) if session else [])) for job in jobs
        ]
    for number, (title, findings) in enumerate(checked):
        click.echo(("\n" if number else "") + click.style(title, bold=True))
        for finding in findings:
            _show(finding)
    if len(jobs) > 1:
        click.echo(f"\n{_together(jobs)}")
    if not all(checks.all_ok(findings) for _, findings in checked):
        raise SystemExit(2)


def _together(jobs: list) -> str:
    """What all jobs cost at most."""
    from workshop.account.prices import up_to_cents

    most, without = 0.0, 0
    for job in jobs:
        try:
            most += job.cost.most_usd
        except ValueError:  # such as PriceNotKnown
            without += 1
    rest = f", and {without} whose price is not known" if without else ""
    return f"All {len(jobs)} jobs together: at most {up_to_cents(most):.2f} USD{rest}."


def _lesson_jobs(lesson: str, seat: str, session, given: tuple[str, ...]) -> list:
    """The jobs of a lesson, as they would be sent to AWS."""
    from workshop.account import preflight as checks
    from workshop.jobs.job_preview import preview, preview_session
    from workshop.jobs.lesson_jobs import UnknownLesson, lesson_jobs
    from workshop.jobs.session import SessionError

    values = dict(map(parameter, given))
    try:
        sends_nothing = preview_session("aws", seat, session.region if session else "")
        jobs = lesson_jobs(lesson, values)
    except (UnknownLesson, SessionError) as error:
        raise WrongUse(str(error)) from error
    if not jobs:
        raise WrongUse(f"Lesson {lesson} starts no job on SageMaker: there is nothing to check.")
    network = _network(session) if session else None
    if values.get("subnets") and values.get("security_group_ids"):
        network = {name: values[name] for name in ("subnets", "security_group_ids")}
    previewed = preview(jobs, sends_nothing, network)
    return [checks.JobConfiguration.from_estimator(row.estimator, row.name) for row in previewed]


def _network(session) -> dict | None:
    """The seat's own network for jobs in a VPC, if there is one and it may be looked at."""
    from botocore.exceptions import BotoCoreError, ClientError

    from workshop.account.stacks import StackError
    from workshop.jobs.vpc import network_from_stack

    try:
        return network_from_stack(session)
    except (StackError, BotoCoreError, ClientError):
        return None  # then the jobs' network is reported as not checked


def _ask(job, session) -> list:
    from workshop.account.preflight import ask
    from workshop.account.preflight.facts import unknown
    from workshop.jobs.job_preview import NO_NETWORK

    if not set(job.subnets) & set(NO_NETWORK["subnets"]):
        return ask(job, session)
    without = dataclasses.replace(job, subnets=(), security_group_ids=())
    reason = "the seat has no network stack, and the lesson's parameter subnets is not set."
    remedy = "Make one (workshop stacks up network), or give -p subnets=[ID] and the group's."
    return [*ask(without, session), unknown("network", reason, remedy)]


def _show(finding) -> None:
    word, colour = MARKS[finding.ok]
    click.echo(f"  {click.style(f'{word:<2}', fg=colour)}  {finding.topic:<12}  {finding.reason}")
    if finding.remedy:
        click.echo(f"{'':<20}to do: {finding.remedy}")
    if finding.source:
        click.echo(f"{'':<20}source: {finding.source}")
