"""`workshop doctor`: one line per requirement of the kit, with what to do if it is not met."""

from __future__ import annotations

import click

from workshop.doctor.checks import examine
from workshop.doctor.installed import FAIL, OK, WARN

COLOURS = {OK: "green", WARN: "yellow", FAIL: "red"}


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=4600,
    show_default=True,
    help="The emulator's port.",
)
def doctor(port: int) -> None:
    """Check this machine, one line per requirement; exit 1 only if the kit can't work."""
    levels = []
    for name, check in examine(port):
        level = click.style(f"{check.level:<4}", fg=COLOURS[check.level])
        click.echo(f"{level}  {name:<13} {check.finding}")
        if check.do:
            click.echo(f"{'':<6}{'':<13} to do: {check.do}")
        levels.append(check.level)
    click.echo(
        f"{levels.count(OK)} OK, {levels.count(WARN)} warnings, {levels.count(FAIL)} failures"
    )
    raise SystemExit(1 if FAIL in levels else 0)
