"""The command `python -m data_prep`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Any

import click

from data_prep import cifar10, digits, mnist
from data_prep.channels import DataError
from data_prep.s3 import upload

PATH = click.Path(path_type=Path)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
source_option = click.option(
    "--source",
    metavar="FOLDER|URL",
    help="Folder or URL that holds the original files, instead of the known mirrors.",
)


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
    """Fetch, verify, convert and upload the workshop's data sets.

    Running a command again is cheap: a folder that is complete is left as it is.
    """


@main.command("digits")
@click.option("--out", type=PATH, help="Folder to make.  [default: data/digits, data/digits-SIZE]")
@click.option(
    "--size", type=click.IntRange(min=4), default=8, show_default=True, help="Pixels of a side."
)
@quiet_option
def _digits(**options: Any) -> None:
    """Handwritten digits, bundled with scikit-learn: no network needed.

    They have 8x8 pixels; --size 28 resamples them to 28x28, for training steps worth dividing.
    """
    digits.prepare(**options)


@main.command("mnist")
@click.option("--out", type=PATH, default="data/mnist", show_default=True, help="Folder to make.")
@source_option
@quiet_option
def _mnist(**options: Any) -> None:
    """MNIST, 28x28 grey digits, as .npz files (11 MB to download)."""
    mnist.prepare(**options)


@main.command("cifar10")
@click.option("--out", type=PATH, default="data/cifar10", show_default=True, help="Folder to make.")
@source_option
@quiet_option
def _cifar10(**options: Any) -> None:
    """CIFAR-10, 32x32 colour pictures, as TFRecord files (170 MB to download)."""
    cifar10.prepare(**options)


@main.command("upload")
@click.argument("directory", type=PATH)
@click.argument("destination", metavar="S3_URI")
@quiet_option
def _upload(directory: Path, destination: str, quiet: bool) -> None:
    """Copy DIRECTORY to S3_URI (s3://bucket/prefix); what is there is not sent again."""
    upload(directory, destination, quiet=quiet)


if __name__ == "__main__":
    main(prog_name="python -m data_prep")
