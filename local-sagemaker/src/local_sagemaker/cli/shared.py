"""What the commands share."""

import click


class WrongUse(click.ClickException):
    """A message and exit status 2: nothing is broken, what was asked for is not there."""

    exit_code = 2
