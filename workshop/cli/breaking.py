"""workshop break: what breaks distributed training, reproduced on this machine."""

from __future__ import annotations

import sys

import click

from workshop.cli.shared import INTERRUPTED, WrongUse


@click.command("break")
@click.argument("name", required=False)
@click.option("--fixed", is_flag=True, help="Without the mistake: then nothing must fail.")
def break_(name, fixed) -> None:
    """List the ways in which distributed training breaks, or reproduce one: NAME.

    It prints what was done, the symptom, the line of the log that tells it, and the remedy. The
    exit status is 0 when the failure showed itself as described (with --fixed: when nothing
    failed), 1 when not, and 2 when this machine cannot try it.
    """
    from workshop import failures  # pandas and boto3 come with it: --help need not wait

    if name is None:
        if fixed:
            raise WrongUse("--fixed goes with a NAME. `workshop break` lists them.")
        _list(failures)
        return
    try:
        result = failures.reproduce(name, fixed)
    except failures.UnknownFailure as error:
        raise WrongUse(str(error)) from error
    except KeyboardInterrupt:
        click.echo("\nInterrupted. Everything that was started has been ended.", err=True)
        sys.exit(INTERRUPTED)
    if result.impossible:
        raise WrongUse(f"{name} cannot be tried here: {result.impossible}")
    click.echo(result)
    sys.exit(0 if result.as_described else 1)


def _list(failures) -> None:
    width = max(map(len, failures.ALL))
    for row in failures.ALL.values():
        click.echo(f"{row.name:<{width}}  {row.seconds:>3} s  lesson {row.lesson}  {row.done}")
    click.echo("\nworkshop break NAME reproduces one; --fixed does it without the mistake.")
