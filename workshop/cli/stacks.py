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

# Those of account.stacks, which is slow to import.
NAMES = ("storage", "roles", "network", "notebook", "budget")


def stack_options(command):
    """The options that the three commands share."""
    for option in (
        click.argument("names", nargs=-1, type=click.Choice(NAMES), metavar="[NAME]..."),
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
    budget     mails when the account spends more than BudgetUsd; needs -p Email=...
    """


@stacks.command()
@stack_options
@click.option(
    "-p", "--parameter", "given", multiple=True, metavar="KEY=VALUE", help="For a template."
)
def up(names, seat, target, given) -> None:
    """Create or update stacks: those named, or storage and roles.

    Running it again changes nothing, and finishes what was interrupted. Exit status: 0 done, 1 a
    stack can't be created, 2 usage error.
    """
    parameters = _parameters(given)
    with opened(target, seat) as session:
        from workshop.account.stacks import STACKS, deploy

        names = names or STACKS
        with _work(f"stacks up {' '.join(names)}", session):
            deploy(session, names, click.echo, parameters)


@stacks.command()
@stack_options
def status(names, seat, target) -> None:
    """Show each stack that a seat can have: its state, and what it costs by the hour.

    Exit status: 0 all existing stacks can be used, 1 one can't, 2 usage error.
    """
    with opened(target, seat) as session:
        from workshop.account import stacks as account

        with _work("stacks status", session):
            rows = account.status(session, names or account.ALL)
            _show(session, rows)
    if any(row.state != account.NOT_THERE and not row.usable for row in rows):
        raise SystemExit(1)


@stacks.command()
@stack_options
@click.option("--yes", is_flag=True, help="Do not ask. For programs.")
def down(names, seat, target, yes) -> None:
    """Delete stacks: those named, or all; the last one made goes first.

    Only stacks with the seat's tags. A bucket that is not empty is not deleted: use
    `workshop clean` for that. On AWS it asks first. Exit status: 0 they are gone, 1 they are
    not, 2 usage error.
    """
    with opened(target, seat) as session:
        from workshop.account import stacks as account

        with _work(f"stacks down {' '.join(names)}".strip(), session):
            rows = account.status(session, names or account.ALL)
            there = [row for row in rows if row.state != account.NOT_THERE]
            if not there:
                click.echo(f"Seat {seat} has no such stack in {session.region}.")
                return
            if target == "aws" and not yes:
                _ask(there, session.region)
            account.delete(session, [row.name for row in there], click.echo)


@contextlib.contextmanager
def _work(command: str, session) -> Iterator[None]:
    """Failures and Ctrl-C become a message that says what to do."""
    from workshop.account.stacks import StackError

    try:
        yield
    except StackError as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        click.echo(
            "\nInterrupted. What CloudFormation has begun, it finishes without this program. The "
            f"rest is done by the same again: workshop {command} --seat {session.seat} "
            f"--target {session.target}",
            err=True,
        )
        raise SystemExit(INTERRUPTED) from None


def _parameters(given: tuple[str, ...]) -> dict[str, str]:
    wrong = [text for text in given if "=" not in text]
    if wrong:
        raise WrongUse(f"--parameter {wrong[0]!r} is not KEY=VALUE, such as Nat=yes.")
    return dict(text.split("=", 1) for text in given)


def _ask(rows: list, region: str) -> None:
    click.echo(f"In {region}: " + ", ".join(row.stack for row in rows))
    if any(row.name == "notebook" for row in rows):
        click.echo("The notebook instance's disk goes with it, and all files on it.")
    click.confirm("Delete?", abort=True)


def _show(session, stacks: list) -> None:
    from workshop.account.prices import hourly_cost

    costs = [hourly_cost(session, stack) for stack in stacks]
    rows = []
    for stack, cost in zip(stacks, costs, strict=True):
        outputs = "\n".join(f"{key}: {value}" for key, value in stack.outputs.items())
        parts = "".join(f"\n{count} {part}" for part, count in cost.parts.items())
        rows.append((stack.stack, stack.state, stack.reason or outputs, f"{cost.usd:.3f}{parts}"))
    print_table(("stack", "state", "outputs", "USD an hour"), rows)
    total = sum(cost.usd for cost in costs)
    if session.target == "local":
        free = "On this machine nothing costs anything."
        click.echo(f"{free} On AWS this would be {total:.3f} USD an hour.")
        return
    click.echo(
        f"{total:.3f} USD an hour for what is here, used or not, at the prices of "
        "workshop/account/prices.toml. What is stored, and gigabytes that move, come on top."
    )
