"""workshop clean: delete everything that a seat owns, and prove that nothing is left."""

from __future__ import annotations

import sys

import click
from rich.filesize import decimal

import local_sagemaker
from workshop.cli.shared import (
    INTERRUPTED,
    WrongUse,
    opened,
    print_table,
    seat_option,
    target_option,
)


@click.command()
@seat_option
@target_option
@click.option("--yes", is_flag=True, help="Do not ask. For programs.")
@click.option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
def clean(seat, target, yes, dry_run) -> None:
    """Delete everything that a seat owns, then look again and say what is left.

    Running jobs are stopped; endpoints, models, logs, objects, job records and stacks are deleted.
    Only what is tagged as this seat's. Asks first. Exit status: 0 nothing is left (with --dry-run:
    it was listed), 1 something is left, 2 usage error.
    """
    if not (yes or dry_run or at_terminal()):
        raise WrongUse(
            "This is not a terminal, so there is nobody to ask, and nothing was deleted. Add --yes "
            "to delete without a question, or --dry-run to look."
        )
    with opened(target, seat) as session:
        code = _clean(session, yes, dry_run)
    if target == "local":
        click.echo(
            "The emulator keeps the rest of its state (other seats', too) in "
            f"{local_sagemaker.state_directory()}. `local-sagemaker stop --forget` ends it and "
            "removes all of that."
        )
    raise SystemExit(code)


def at_terminal() -> bool:
    """Whether there is a user to answer a question."""
    return sys.stdin.isatty()


def _clean(session, yes: bool, dry_run: bool) -> int:
    """Look, ask, delete, look again. Returns the exit status."""
    from workshop.account import cleanup

    inventory = cleanup.find(session)
    show(inventory, session)
    if dry_run:
        for foreign in inventory.foreign:
            click.echo(f"Would not be touched: {foreign.kind}: {foreign.name}: {foreign.note}")
        click.echo("Nothing was deleted: --dry-run.")
        return 1 if inventory.unseen else 0
    report = cleanup.Report(left=inventory)
    if inventory.owned:
        if not yes and not click.confirm("Delete all of it? This can't be undone", default=False):
            click.echo("Nothing was deleted.")
            return 1
        try:
            cleanup.clean(session, click.echo, report)
        except KeyboardInterrupt:
            click.echo(
                f"\nInterrupted. {len(report.done)} of {len(inventory.owned)} entries are done; "
                "AWS finishes what it has begun without this program. Run the same again: it "
                "deletes the rest."
            )
            return INTERRUPTED
    for line in report.lines():
        click.echo(line)
    return 0 if report.nothing_left else 1


def show(inventory, session) -> None:
    """The table of what there is, and what it costs."""
    where = f"seat {session.seat}, target {session.target}, {session.region}"
    if session.target == "aws":  # whose credentials these are is easily mistaken
        where += f", account {session.client('sts').get_caller_identity()['Account']}"
    for kind, reason in inventory.unseen.items():
        click.echo(f"Could not be looked at: {kind}: {reason}")
    if not inventory.owned:
        nothing = "nothing that could be seen" if inventory.unseen else "nothing"
        click.echo(f"There is {nothing} of {where}.")
        return
    click.echo(f"What there is of {where}:")
    names = ("kind", "name", "how many", "size", "USD a month", "")
    print_table(names, map(row, inventory.owned))
    click.echo(total(inventory, session))


def row(resource) -> tuple[str, ...]:
    """A row of the table."""
    size, usd = resource.size, resource.usd_per_month
    return (
        resource.kind,
        resource.name,
        str(resource.count),
        "not told" if size is None else decimal(size) if size else "",
        "not known" if usd is None else f"{usd:.2f}",
        resource.note,
    )


def total(inventory, session) -> str:
    """One line: what all of it costs, from which prices."""
    from workshop.account.prices import price_table

    unknown = sum(resource.usd_per_month is None for resource in inventory.owned)
    text = f"While it stays: {inventory.usd_per_month:.2f} USD a month"
    if unknown:
        text += f", and {unknown} entries whose cost is not known here"
    text += f" (list prices of {price_table()['region']}, dated in workshop/account/prices.toml)."
    return text + (" On this machine: nothing." if session.target == "local" else "")
