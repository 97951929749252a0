"""The command `workshop`.

Each subcommand lives in `workshop/commands/` and is imported only when it is used, so
that `workshop --help` and `workshop env` answer at once.
"""

from __future__ import annotations

import importlib

import click

# subcommand -> "module:attribute" of its click command
COMMANDS = {
    "up": "workshop.commands.endpoint:up",
    "down": "workshop.commands.endpoint:down",
    "status": "workshop.commands.endpoint:status",
    "env": "workshop.commands.endpoint:env",
    "jobs": "workshop.commands.jobs:jobs",
    "links": "workshop.commands.links:links",
    "break": "workshop.commands.breaking:break_",
    "logs": "workshop.commands.jobs:logs",
    "stop": "workshop.commands.jobs:stop",
    "interrupt": "workshop.commands.interrupt:interrupt",
    "doctor": "workshop.commands.doctor:doctor",
    "preflight": "workshop.commands.preflight:preflight",
    "request": "workshop.commands.request:request",
    "clean": "workshop.commands.clean:clean",
    "stacks": "workshop.commands.stacks:stacks",
    "run": "workshop.commands.run:run",
    "lab": "workshop.commands.lab:lab",
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


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Data-parallel training on Amazon SageMaker, and on this machine without AWS."""


if __name__ == "__main__":
    main()
