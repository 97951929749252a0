"""What ends a command of `local-sagemaker` with one sentence."""

import click


class EmulatorError(click.ClickException):
    """Why the emulator can't be started, found or ended, or its state not used; with what to do."""
