"""workshop stacks up, status, down: what AWS must hold for a seat."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import click

from workshop.cli.shared import (
    INTERRUPTED,
    WrongUse,
    opened,
    print_table,
    seat_option,
    target_option,
)

ALL = ("storage", "roles", "network", "subnets", "notebook")  # account.stacks.ALL, a slow import


def of_a_seat(command):
    """The options that the three commands share."""
    for option in (
        click.argument("names", nargs=-1, type=click.Choice([*ALL, "room"]), metavar="[NAME]..."),
        seat_option,
        target_option,
    ):
        command = option(command)
    return command


@click.group()
def stacks() -> None:
    """Create, show and delete the CloudFormation stacks of a seat.

    \b
    storage    the seat's bucket
    roles      what jobs and the notebook instance may do
    network    a VPC for jobs; costs nothing without its parameters Nat, InterfaceEndpoints
    notebook   a notebook instance with the kit; costs money by the hour

    \b
    Of a class (up --seats 20):
    room       the VPC that its seats share, a budget, policies for users
    subnets    a seat's place in that VPC
    """


@stacks.command()
@of_a_seat
@click.option(
    "-p", "--parameter", "given", multiple=True, metavar="KEY=VALUE", help="For a template."
)
@click.option("--seats", metavar="N|NAMES", help="A class: 20 makes s01 to s20; or ann,bob,chi.")
def up(names, seat, target, given, seats) -> None:
    """Create or update stacks: those named, or storage and roles.

    With --seats those of a whole class: the room, and for each seat storage, roles and subnets, and
    notebook if you name it. On AWS it needs -p Email=..., for the budget's alarms; -p BudgetUsd,
    InstanceTypes, MaxRunSeconds and other parameters apply to all seats.

    Running it again changes nothing, and finishes what was interrupted. Exit status: 0 done, 1 a
    stack can't be created, 2 usage error.
    """
    if seats is not None:
        _up_class(seats, names, target, _parameters(given))
        return
    with opened(target, seat) as session:
        from workshop.account.stacks import STACKS, StackError, check_parameters, deploy

        names = names or STACKS
        parameters = _parameters(given)
        try:
            check_parameters(names, parameters)
        except StackError as error:
            raise WrongUse(str(error)) from error
        with work(f"stacks up {' '.join(names)}", session), _spinner():
            deploy(session, names, click.echo, parameters)


def _up_class(seats: str, also: tuple[str, ...], target: str, parameters: dict[str, str]) -> None:
    if target == "aws" and not parameters.get("Email"):
        raise WrongUse(
            "A class on AWS needs an address for its budget's alarms: -p Email=you@example.org, "
            "and -p BudgetUsd=N if 100 USD a month is not your limit."
        )
    with opened(target, "class") as session:
        from workshop.account import classroom
        from workshop.account.stacks import StackError

        try:
            names = classroom.seat_names(seats)
            classroom.check([*classroom.PER_SEAT, *also], parameters)
        except (ValueError, StackError) as error:
            raise WrongUse(str(error)) from error
        command = f"stacks up {' '.join([*also, '--seats', seats])}"
        with work(command, session), _spinner():
            everyone = classroom.up(session, names, parameters, also, click.echo)
        made = classroom.status(session)[classroom.CLASS][0].outputs
    click.echo(f"The class has {len(everyone)} seats: {', '.join(everyone)}.")
    click.echo(f"Attach to the instructor: {made['InstructorPolicyArn']}")
    click.echo(f"Attach to learners, tagged seat=NAME: {made['LearnerPolicyArn']}")


@stacks.command()
@of_a_seat
def status(names, seat, target) -> None:
    """Show each stack that a seat can have: its state, and what it costs by the hour.

    Exit status: 0 all existing stacks can be used, 1 one can't, 2 usage error.
    """
    with opened(target, seat) as session:
        from workshop.account import stacks as account

        with work("stacks status", session):
            rows = account.status(session, names or ALL)
            rows = [
                row
                for row in rows
                if row.state != account.NOT_THERE or row.name in names or row.name != "subnets"
            ]
            _show(session, rows)
    if any(row.state != account.NOT_THERE and not row.usable for row in rows):
        raise SystemExit(1)


@stacks.command()
@of_a_seat
@click.option("--yes", is_flag=True, help="Do not ask. For programs.")
def down(names, seat, target, yes) -> None:
    """Delete stacks: those named, or all; the last one made goes first.

    Only stacks with the seat's tags. A bucket that is not empty is not deleted: use
    `workshop clean` for that. On AWS it asks first. Exit status: 0 they are gone, 1 they are
    not, 2 usage error.
    """
    with opened(target, seat) as session:
        from workshop.account import stacks as account

        with work(f"stacks down {' '.join(names)}".strip(), session):
            rows = account.status(session, names or ALL)
            there = [row for row in rows if row.state != account.NOT_THERE]
            if not there:
                click.echo(f"Seat {seat} has no such stack in {session.region}.")
                return
            if target == "aws" and not yes:
                _ask(there, session.region)
            with _spinner():
                account.delete(session, [row.name for row in there], click.echo)


@contextlib.contextmanager
def work(command: str, session) -> Iterator[None]:
    """Failures and Ctrl-C as a sentence that says what to do."""
    from workshop.account.stacks import StackError

    try:
        yield
    except StackError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        of = "" if session.seat == "class" else f" --seat {session.seat}"
        click.echo(
            "\nInterrupted. What CloudFormation has begun, it finishes without this program. The "
            f"rest is done by the same again: workshop {command}{of} --target {session.target}",
            err=True,
        )
        raise SystemExit(INTERRUPTED) from None


def _parameters(given: tuple[str, ...]) -> dict[str, str]:
    wrong = [one for one in given if "=" not in one]
    if wrong:
        raise WrongUse(f"--parameter {wrong[0]!r} is not KEY=VALUE, such as Nat=yes.")
    return dict(one.split("=", 1) for one in given)


def _ask(there: list, region: str) -> None:
    click.echo(f"In {region}: " + ", ".join(one.stack for one in there))
    if any(one.name == "notebook" for one in there):
        click.echo("The notebook instance's disk goes with it, and all files on it.")
    click.confirm("Delete?", abort=True)


def _spinner():
    """CloudFormation takes minutes: at a terminal a spinner moves meanwhile."""
    from rich.console import Console

    return Console(stderr=True).status("CloudFormation is at work")


def _show(session, stacks: list) -> None:
    from workshop.account.prices import hourly_cost

    rows, total, dates = [], 0.0, []
    for one in stacks:
        cost = hourly_cost(session, one)
        held = "\n".join(f"{key}: {value}" for key, value in one.outputs.items())
        of = "".join(f"\n{count} {part}" for part, count in cost.parts.items())
        rows.append((one.stack, one.state, one.reason or held, f"{cost.usd:.3f}{of}"))
        total, dates = total + cost.usd, [*dates, *([cost.oldest] if cost.oldest else [])]
    print_table(("stack", "state", "outputs", "USD an hour"), rows)
    click.echo(_sum(session.target, total, min(dates, default=None)))


def _sum(target: str, total: float, oldest) -> str:
    if target == "local":
        return (
            f"On this machine nothing costs anything. On AWS this would be {total:.3f} USD an hour."
        )
    of = f", at us-east-1's prices of {oldest} or later" if oldest else ""
    return (
        f"{total:.3f} USD an hour for what is here, used or not{of}. What is stored, and gigabytes "
        "that move, are charged besides."
    )
