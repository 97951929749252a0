"""The command `local-sagemaker`: start, stop, point a shell at it, set the bandwidth, interrupt."""

from __future__ import annotations

import click

from local_sagemaker.cli.bandwidth import bandwidth
from local_sagemaker.cli.interrupt import interrupt
from local_sagemaker.cli.server import env, start, status, stop


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """SageMaker on this machine: training jobs and hosted models as real processes."""


for command in (start, stop, status, env, bandwidth, interrupt):
    main.add_command(command)
