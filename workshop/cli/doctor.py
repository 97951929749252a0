"""`workshop doctor`: one line per requirement of the kit, with what to do if it is not met."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import click

from workshop.launch.doctor import examine
from workshop.launch.installed import FAIL, OK, WARN, CheckResult

COLOURS = {OK: "green", WARN: "yellow", FAIL: "red"}


def show(name: str, check: CheckResult) -> None:
    level = click.style(f"{check.level:<4}", fg=COLOURS[check.level])
    click.echo(f"{level}  {name:<13} {check.found}")
    if check.do:
        click.echo(f"{'':<6}{'':<13} to do: {check.do}")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of lines.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=4600,
    show_default=True,
    help="The local endpoint's port.",
)
def doctor(as_json: bool, port: int) -> None:
    """Check this machine, one line per requirement; exit 1 only if the kit can't work."""
    results = {}
    for name, check in examine(port):
        results[name] = check
        if not as_json:
            show(name, check)
    levels = [check.level for check in results.values()]
    if as_json:
        click.echo(json.dumps({name: asdict(check) for name, check in results.items()}, indent=1))
    else:
        click.echo(
            f"{levels.count(OK)} OK, {levels.count(WARN)} warnings, {levels.count(FAIL)} failures"
        )
    sys.exit(1 if FAIL in levels else 0)
