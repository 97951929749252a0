"""A table of bad command lines: what each has to say, and that it harms nothing around it."""

import contextlib
import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import click
from click.testing import CliRunner

REPOSITORY = Path(__file__).resolve().parents[2]
# A learner's own variables that would send a program elsewhere.
NOT_OURS = ("AWS_", "SM_", "WORKSHOP_", "TF_CONFIG", "OMPI_", "RANK", "WORLD_SIZE", "MASTER_")


@dataclass(frozen=True)
class Row:
    """A bad input.

    name: what is wrong. command: a shell's words; {here} is a folder of the row's own. words:
    what the message must hold: the value, what was expected, the remedy. code: the exit status.
    make: puts files into the folder first.
    """

    name: str
    command: str
    words: tuple[str, ...]
    code: int = 2
    make: Callable[[Path], object] | None = None


def a_file(here: Path) -> None:
    """For `make` of a row."""
    (here / "file").write_text("a file")


def tree(folder: Path) -> dict[str, str]:
    """Every path below `folder`, with its content's hash if it is a file."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else "folder"
        for path in folder.rglob("*")
    }


def check(row: Row, command: click.Command, tmp_path: Path) -> None:
    """The command fails as the row says, raises nothing, and changes nothing."""
    around = tmp_path / "around"
    here = around / "here"
    here.mkdir(parents=True)
    (around / "precious.txt").write_text("nobody's to change")
    if row.make:
        row.make(here)
    before = tree(around)
    argv = [word.replace("{here}", str(here)) for word in row.command.split(" ")]
    argv = [word.replace("~", " ") for word in argv]  # a word with a space in it
    with mock.patch.dict(os.environ, variables(here), clear=True), contextlib.chdir(here):
        done = CliRunner().invoke(command, argv)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == row.code, f"exit status {done.exit_code}\n{done.output}"
    flat = " ".join(done.output.split())
    missing = [word for word in row.words if word.replace("{here}", str(here)) not in flat]
    assert not missing, f"lacks {missing}:\n{done.output}"
    assert tree(around) == before, "something was written, changed or lost"


def variables(here: Path) -> dict[str, str]:
    """A shell's variables, whose home and endpoint are the row's own."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(NOT_OURS)}
    env |= {"HOME": str(here), "LOCAL_SAGEMAKER_STATE_DIR": str(here / "state"), "COLUMNS": "400"}
    return env | {"PYTHONPATH": str(REPOSITORY), "AWS_EC2_METADATA_DISABLED": "true"}
