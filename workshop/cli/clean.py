"""workshop clean: delete everything that a seat owns, and prove that nothing is left."""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

import local_sagemaker
from workshop.cli.shared import INTERRUPTED, WrongUse, opened, seat_option, target_option

MOST_ROWS = 6  # of one kind; more become one row


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
        _tell_of_state()
    raise SystemExit(code)


def at_terminal() -> bool:
    """Whether there is a user to answer a question."""
    return sys.stdin.isatty()


def _clean(session, yes: bool, dry_run: bool) -> int:
    """Look, ask, delete, look again. Returns the exit status."""
    from workshop.account import cleanup

    found = cleanup.find(session)
    show(found, session)
    if not found.owned or dry_run:
        for line in cleanup.Report(left=found).lines() if not dry_run else _foreign(found):
            click.echo(line)
        return 1 if found.unseen else 0
    if not yes and not click.confirm("Delete all of it? This can't be undone", default=False):
        click.echo("Nothing was deleted.")
        return 1
    report = cleanup.Report()
    try:
        cleanup.clean(session, click.echo, report)
    except KeyboardInterrupt:
        click.echo(
            f"\nInterrupted. {len(report.done)} of {len(found.owned)} entries are done; AWS "
            "finishes what it has begun without this program. Run the same again: it deletes the "
            "rest."
        )
        return INTERRUPTED
    for line in report.lines():
        click.echo(line)
    return 0 if report.nothing_left else 1


def show(found, session) -> None:
    """The table of what there is, and what it costs."""
    where = f"seat {session.seat}, target {session.target}, {session.region}"
    if session.target == "aws":  # whose credentials these are is easily mistaken
        where += f", account {session.client('sts').get_caller_identity()['Account']}"
    for kind, why in found.unseen.items():
        click.echo(f"Could not be looked at: {kind}: {why}")
    if not found.owned:
        seen = "is nothing" if not found.unseen else "is nothing that could be seen"
        click.echo(f"There {seen} of {where}.")
        return
    table = Table(title=f"What there is of {where}", title_justify="left")
    for name in ("kind", "name"):
        table.add_column(name, overflow="fold")
    for name in ("how many", "size", "USD a month"):
        table.add_column(name, justify="right")
    table.add_column("", overflow="fold")
    for kind in dict.fromkeys(one.kind for one in found.owned):
        for row in rows(kind, found.of(kind)):
            table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    click.echo(total(found, session))


def rows(kind: str, resources: list) -> list[tuple[str, ...]]:
    """A row for each resource; one row for all of them if they are many."""
    from workshop.account.cleanup import totals

    if len(resources) <= MOST_ROWS:
        return [(kind, one.name, *_shown(totals([one])), one.note) for one in resources]
    notes = dict.fromkeys(one.note for one in resources)
    name = f"{resources[0].name} and {len(resources) - 1} others"
    return [(kind, name, *_shown(totals(resources)), "; ".join(filter(None, notes)))]


def total(found, session) -> str:
    """One line: what all of it costs, from which prices."""
    from workshop.account.prices import price_table

    unknown = sum(one.usd_per_month is None for one in found.owned)
    text = f"While it stays: {found.usd_per_month:.2f} USD a month"
    if unknown:
        text += f", and {unknown} entries whose cost is not known here"
    text += f" (list prices of {price_table()['region']}, dated in workshop/account/prices.toml)."
    return text + (" On this machine: nothing." if session.target == "local" else "")


def _foreign(found) -> list[str]:
    lines = [f"Would not be touched: {one.kind}: {one.name}: {one.why}" for one in found.foreign]
    return [*lines, "Nothing was deleted: --dry-run."]


def _shown(counted) -> tuple[str, str, str]:
    count, size, usd = counted
    return (
        str(count),
        "not told" if size is None else decimal(size) if size else "",
        "not known" if usd is None else f"{usd:.2f}",
    )


def _tell_of_state() -> None:
    state = local_sagemaker.state_directory()
    click.echo(
        f"The emulator keeps the rest of its state (other seats', too) in {state}. "
        "`local-sagemaker stop --forget` ends it and removes all of that."
    )
