"""`workshop doctor`: one line per requirement of the kit, with what to do if it is not met."""

from __future__ import annotations

import importlib.metadata
import platform

import click

from workshop.doctor.checks import examine
from workshop.doctor.installed import FAIL, OK, WARN

COLOURS = {OK: "green", WARN: "yellow", FAIL: "red"}


@click.command()
def doctor() -> None:
    """Check this machine, one line per requirement; exit 1 only if the kit can't work.

    The last line sums it up: PASS or FAIL, what is lacking, and the kind of machine. Before a
    class, send that line to the instructor.
    """
    levels, lacking = [], []
    for name, check in examine():
        level = click.style(f"{check.level:<4}", fg=COLOURS[check.level])
        click.echo(f"{level}  {name:<13} {check.finding}")
        if check.do:
            click.echo(f"{'':<6}{'':<13} to do: {check.do}")
        levels.append(check.level)
        lacking += [f"{check.level} {name}"] if check.level != OK else []
    version = importlib.metadata.version("sagemaker-data-parallel-workshop")
    machine = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    click.echo(
        f"{'FAIL' if FAIL in levels else 'PASS'}: {levels.count(OK)} of {len(levels)} OK"
        f"{'; ' * bool(lacking)}{', '.join(lacking)}; kit {version}, {machine}"
    )
    raise SystemExit(1 if FAIL in levels else 0)
