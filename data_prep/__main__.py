"""The command `python -m data_prep`."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from data_prep import cifar10, digits, mnist
from data_prep.errors import DataError
from data_prep.s3 import upload

SETTINGS = {"help_option_names": ["-h", "--help"]}
A_PATH = click.Path(path_type=Path)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print errors only.")


def _run(work: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Do the work; turn what can go wrong into one clear line and exit status 1."""
    # As an exception, so that temporary files are removed on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        work(*args, **options)
    except DataError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        text = f"{error}. Check that you may read and write there, and that there is space."
        raise click.ClickException(text) from error


def _command(name: str, shards: int, *, download: bool = True) -> Callable[..., Any]:
    """A command that prepares a data set, with the options that all of them have."""
    options = [
        click.option("--out", type=A_PATH, default=f"data/{name}", help="Folder to write into."),
        click.option(
            "--shards",
            type=click.IntRange(min=1),
            default=shards,
            help="Number of files in the training channel.",
        ),
        quiet_option,
    ]
    if download:
        source_help = "Folder or URL that holds the original files, instead of the known mirrors."
        cache_help = "Folder that keeps downloads.  [default: downloads/ beside --out]"
        options += [
            click.option("--source", metavar="FOLDER|URL", help=source_help),
            click.option("--cache", type=A_PATH, help=cache_help),
        ]

    def decorate(function: Callable[..., Any]) -> Any:
        for option in reversed(options):
            function = option(function)
        return main.command(name, context_settings=SETTINGS | {"show_default": True})(function)

    return decorate


@click.group(context_settings=SETTINGS)
def main() -> None:
    """Fetch, verify, convert and upload the workshop's data sets.

    Running a command again is cheap: it verifies checksums and says "up to date".
    """


@_command("digits", digits.TRAINING_SHARDS, download=False)
@click.option("--tfrecord", is_flag=True, help="TFRecord files, as of CIFAR-10, not .npz files.")
def _digits(tfrecord: bool, **options: Any) -> None:
    """Handwritten digits, 8x8, bundled with scikit-learn: no network needed."""
    _run(digits.prepare, as_tfrecord=tfrecord, **options)


@_command("mnist", mnist.TRAINING_SHARDS)
def _mnist(**options: Any) -> None:
    """MNIST, 28x28 grey digits, as .npz files (11 MB to download)."""
    _run(mnist.prepare, **options)


@_command("cifar10", cifar10.TRAIN_SHARDS)
def _cifar10(**options: Any) -> None:
    """CIFAR-10, 32x32 colour pictures, as TFRecord files (170 MB to download)."""
    _run(cifar10.prepare, **options)


@main.command("upload", context_settings=SETTINGS)
@click.argument("directory", type=A_PATH)
@click.argument("destination", metavar="S3_URI")
@quiet_option
def _upload(directory: Path, destination: str, quiet: bool) -> None:
    """Copy DIRECTORY to S3_URI (s3://bucket/prefix); what is there is not sent again."""
    _run(upload, directory, destination, quiet=quiet)


if __name__ == "__main__":
    main(prog_name="python -m data_prep")
