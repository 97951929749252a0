"""`python -m local_sagemaker`: the emulator in the foreground."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import click

from local_sagemaker.cli import server_options


@click.command(help=__doc__)
@click.option("--state", type=Path, required=True, help="Directory that holds everything.")
@server_options
def main(state, port, isolation, grace, max_instances) -> None:
    from local_sagemaker.server.serve import CannotServe, serve

    # moto's EC2 begins with 1,300 images in each region, and all would be written with each change.
    os.environ.setdefault("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    try:
        serve(state, port or 0, isolation, grace, max_instances)
    except CannotServe as error:
        sys.exit(f"local_sagemaker: {error}")


if __name__ == "__main__":
    main()
