"""The command `python -m data_prep`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import click

from data_prep import cifar10, digits
from data_prep.channels import DataError

PATH = click.Path(path_type=Path)


class _Commands(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; turn what can go wrong into one clear message and exit status 1."""
        # As an exception, so that temporary files are removed on the way out.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        try:
            return super().invoke(ctx)
        except DataError as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            text = f"{error}. Check that you may read and write there, and that there is space."
            raise click.ClickException(text) from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Fetch, verify and convert the workshop's data sets.

    Running a command again is cheap: a folder that is complete is left as it is.
    """


@main.command("digits")
@click.option("--out", type=PATH, help="Folder to make.  [default: data/digits, data/digits-SIZE]")
@click.option(
    "--size", type=click.IntRange(min=4), default=8, show_default=True, help="Pixels of a side."
)
def _digits(**options: Any) -> None:
    """Handwritten digits, bundled with scikit-learn: no network needed.

    They have 8x8 pixels; --size 28 resamples them to 28x28, for training steps worth dividing.
    """
    digits.prepare(**options)


@main.command("cifar10")
@click.option("--out", type=PATH, default="data/cifar10", show_default=True, help="Folder to make.")
@click.option(
    "--source",
    metavar="FOLDER|URL",
    help="Folder or URL that holds the original file, instead of the known mirrors.",
)
def _cifar10(**options: Any) -> None:
    """CIFAR-10, 32x32 colour pictures, as TFRecord files (170 MB to download)."""
    cifar10.prepare(**options)


if __name__ == "__main__":
    main(prog_name="python -m data_prep")
