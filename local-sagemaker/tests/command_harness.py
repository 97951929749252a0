"""Commands that tests run in their own process, and what is expected of their answers."""

import os
from pathlib import Path

import click
from click.testing import CliRunner, Result


def run(main: click.Command, state: Path, *arguments: str, **variables: str) -> Result:
    """Run a command in this process; it never fails with an exception of its own."""
    unset = {name: None for name in os.environ if name.startswith("AWS_")}
    env = {**unset, "LOCAL_SAGEMAKER_STATE_DIR": str(state), **variables}
    done = CliRunner().invoke(main, list(arguments), env=env)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def ok(done: Result) -> str:
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(done: Result) -> str:
    """One line that says why."""
    assert done.exit_code not in (0, 3), done.output
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    return done.stderr
