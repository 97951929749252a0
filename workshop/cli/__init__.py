"""The command `workshop`: parses, calls one subpackage of the library, prints.

A subcommand's module is imported only when it is used, so that `workshop --help` and
`workshop jobs` answer at once.
"""

from __future__ import annotations

import importlib
from typing import Any

import click

# subcommand -> "module:attribute" of its click command
COMMANDS = {
    "jobs": "local_sagemaker:jobs_command",
    "break": "workshop.cli.breaking:break_",
    "why": "workshop.cli.why:explain",
    "record": "workshop.cli.why:record",
    "logs": "local_sagemaker:logs_command",
    "stop": "workshop.cli.jobs:stop",
    "doctor": "workshop.cli.doctor:doctor",
    "preflight": "workshop.cli.preflight:preflight",
    "clean": "workshop.cli.clean:clean",
    "stacks": "workshop.cli.stacks:stacks",
    "class": "workshop.cli.classroom:class_",
    "run": "workshop.cli.run:run",
    "lab": "workshop.cli.lab:lab",
}


class LazyGroup(click.Group):
    """A click group that imports a subcommand's module when it is first asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, attribute = COMMANDS[name].split(":")
        return getattr(importlib.import_module(module), attribute)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand. A file or folder that cannot be used is one sentence."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            if error.filename is None:
                raise
            text = f"{error.filename} cannot be used: {error.strerror}."
            raise click.ClickException(text) from error


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Data-parallel training on Amazon SageMaker, and on this machine without AWS."""
