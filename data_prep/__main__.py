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
SOURCE_HELP = "Folder or URL that holds the original files, instead of the known mirrors."


def _stop_on_sigterm(*_: Any) -> None:
    # As an exception, so that temporary directories are removed on the way out.
    sys.exit(128 + signal.SIGTERM)


def _run(work: Callable[[], Any]) -> None:
    """Do the work; turn what can go wrong into one clear line and exit status 1."""
    signal.signal(signal.SIGTERM, _stop_on_sigterm)
    try:
        work()
    except DataError as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{error}. Check that the file can be read.") from error


def _out(default: str) -> Callable[..., Any]:
    return click.option(
        "--out",
        type=click.Path(path_type=Path),
        default=default,
        show_default=True,
        help="Folder to write the channels into.",
    )


def _shards(default: int) -> Callable[..., Any]:
    return click.option(
        "--shards",
        type=click.IntRange(min=1),
        default=default,
        show_default=True,
        help="Number of files in the training channel.",
    )


source_option = click.option("--source", metavar="FOLDER|URL", help=SOURCE_HELP)
cache_option = click.option(
    "--cache",
    type=click.Path(path_type=Path),
    help="Folder that keeps downloads.  [default: downloads/ beside --out]",
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print errors only.")


@click.group(context_settings=SETTINGS)
def main() -> None:
    """Fetch, verify, convert and upload the workshop's data sets.

    Running a command again is cheap: it verifies checksums and says "up to date".
    """


@main.command("digits", context_settings=SETTINGS)
@_out("data/digits")
@_shards(digits.TRAINING_SHARDS)
@click.option("--tfrecord", is_flag=True, help="TFRecord files, as of CIFAR-10, not .npz files.")
@quiet_option
def digits_command(out: Path, shards: int, tfrecord: bool, quiet: bool) -> None:
    """Handwritten digits, 8x8, bundled with scikit-learn: no network needed."""
    _run(lambda: digits.prepare(out, shards=shards, as_tfrecord=tfrecord, quiet=quiet))


@main.command("mnist", context_settings=SETTINGS)
@_out("data/mnist")
@source_option
@cache_option
@_shards(mnist.TRAINING_SHARDS)
@quiet_option
def mnist_command(
    out: Path, source: str | None, cache: Path | None, shards: int, quiet: bool
) -> None:
    """MNIST, 28x28 grey digits, as .npz files (11 MB to download)."""
    _run(lambda: mnist.prepare(out, source, shards=shards, cache=cache, quiet=quiet))


@main.command("cifar10", context_settings=SETTINGS)
@_out("data/cifar10")
@source_option
@cache_option
@_shards(cifar10.TRAIN_SHARDS)
@quiet_option
def cifar10_command(
    out: Path, source: str | None, cache: Path | None, shards: int, quiet: bool
) -> None:
    """CIFAR-10, 32x32 colour pictures, as TFRecord files (170 MB to download)."""
    _run(lambda: cifar10.prepare(out, source, shards=shards, cache=cache, quiet=quiet))


@main.command("upload", context_settings=SETTINGS)
@click.argument("directory", type=click.Path(path_type=Path))
@click.argument("destination", metavar="S3_URI")
@quiet_option
def upload_command(directory: Path, destination: str, quiet: bool) -> None:
    """Copy DIRECTORY to S3_URI (s3://bucket/prefix); what is there is not sent again."""
    _run(lambda: upload(directory, destination, quiet=quiet))


if __name__ == "__main__":
    main(prog_name="python -m data_prep")
