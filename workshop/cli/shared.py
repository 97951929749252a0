"""What the commands share: options, wrong use, an interrupt's exit status, a session to work in."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator

import click

import local_sagemaker

INTERRUPTED = 130  # the exit status after Ctrl-C


target_option = click.option(
    "--target", type=click.Choice(["local", "aws"]), default="local", show_default=True
)
seat_option = click.option("--seat", default="me", show_default=True, help="Whose: a seat's name.")


class WrongUse(click.ClickException):
    """A message and exit status 2: nothing is broken, what was asked for is not there."""

    exit_code = 2


@contextlib.contextmanager
def opened(target: str, seat: str) -> Iterator:
    """A session; the emulator is up meanwhile. Raises WrongUse if there can be none."""
    from workshop.jobs import local_server  # boto3 comes with them: --help need not wait
    from workshop.jobs.session import SessionError, check_names, session

    try:
        check_names(target, seat)  # before anything is started
    except SessionError as error:
        raise WrongUse(str(error)) from error
    up = local_server.up_for_now(click.echo) if target == "local" else contextlib.nullcontext()
    try:
        with up:
            yield session(target, seat)
    except (SessionError, local_sagemaker.EmulatorError) as error:
        raise WrongUse(str(error)) from error


def print_table(names: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """A table at the terminal; columns of USD stand right."""
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for name in names:
        table.add_column(name, overflow="fold", justify="right" if "USD" in name else "left")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 120).print(table)
