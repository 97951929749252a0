"""workshop run: execute the lessons and write their pages."""

from __future__ import annotations

from pathlib import Path

import click
import yaml

from local_sagemaker import EmulatorError
from workshop.cli.shared import INTERRUPTED, target_option
from workshop.course.lessons import NoSuchLesson, chosen
from workshop.paths import BUILD, NOTEBOOKS


@click.command()
@click.argument("numbers", nargs=-1, metavar="[NN | reference]...")
@target_option
@click.option("--out", type=click.Path(path_type=Path), default=BUILD, help="Default: build/")
@click.option("-p", "given", multiple=True, metavar="NAME=VALUE", help="Set a parameter.")
@click.option(
    "--notebooks",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=NOTEBOOKS,
    help="Folder of the lessons. Default: notebooks/",
)
def run(numbers, target, out, given, notebooks) -> None:
    """Execute lessons in order (all, or those with the numbers NN) and write their pages.

    `reference` is the notebook of that name. Stops at the first that fails, with exit status 1.
    Ends what it started: kernels, jobs, and the emulator if that was down.
    """
    parameters = dict(map(parameter, given))
    if "target" in parameters:
        raise click.UsageError("-p target=...: use --target, which also starts the emulator.")
    # Imported here: `workshop run --help` need not wait for papermill and nbconvert.
    from workshop.course.run import run as run_notebooks
    from workshop.jobs.lesson_jobs import WrongParameter
    from workshop.jobs.session import SessionError

    if out.exists() and not out.is_dir():
        raise click.UsageError(f"--out {out} is a file; expected a folder for the pages.")
    try:
        lessons = chosen(numbers, notebooks.resolve())
        good = run_notebooks(lessons, out.resolve(), target, parameters)
    except (NoSuchLesson, WrongParameter, EmulatorError, SessionError) as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        click.echo("Interrupted. Kernels and jobs of this run are ended.", err=True)
        raise SystemExit(INTERRUPTED) from None
    if not good:
        raise SystemExit(1)


def parameter(text: str) -> tuple[str, object]:
    """NAME=VALUE, the value as in YAML: 3, 0.5, true, text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise click.UsageError(f"-p {text}: expected NAME=VALUE, for example -p epochs=3")
    try:
        return name, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise click.UsageError(
            f"-p {text}: the value is not YAML, such as 3, 0.5, true, text or [1, 2]. Quote a text "
            f"that has brackets or a colon: -p '{name}=\"...\"'"
        ) from error
