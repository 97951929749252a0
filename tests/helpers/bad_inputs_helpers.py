"""A table of bad inputs: what each has to say, and that it harms nothing around it."""

from __future__ import annotations

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
    make: puts files into the folder first. writes: what the program may leave there, by the first
    part of its path.
    """

    name: str
    command: str
    words: tuple[str, ...]
    code: int = 2
    make: Callable[[Path], object] | None = None
    writes: tuple[str, ...] = ()


def run_click(command: click.Command) -> Callable:
    """What `check` needs to run a click command in this process."""

    def run(argv: list[str], here: Path, environ: dict[str, str]) -> tuple[int, str]:
        with mock.patch.dict(os.environ, environ, clear=True), contextlib.chdir(here):
            done = CliRunner().invoke(command, argv)
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.output

    return run


def tree(folder: Path) -> dict[str, str]:
    """Every path below `folder`, with its content's hash or what else it is."""

    def content(path: Path) -> str:
        if path.is_symlink():
            return f"link to {path.readlink()}"
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"

    return {str(path.relative_to(folder)): content(path) for path in folder.rglob("*")}


def check(row: Row, run: Callable, tmp_path: Path) -> None:
    """The row's program fails as the row says, shows no stack trace, and changes nothing.

    run: takes the command's words, the working directory and the variables; gives the exit status
    and what was said.
    """
    around = tmp_path / "around"
    here = around / "here"
    here.mkdir(parents=True)
    (around / "precious.txt").write_text("nobody's to change")
    if row.make:
        row.make(here)
    before = tree(around)
    argv = [word.replace("{here}", str(here)) for word in row.command.split(" ")]
    argv = [word.replace("~", " ") for word in argv]  # a word with a space in it
    code, printed = run(argv, here, variables(here))
    assert "Traceback" not in printed, printed
    assert code == row.code, f"exit status {code}\n{printed}"
    flat = " ".join(printed.split())
    missing = [word for word in row.words if word.replace("{here}", str(here)) not in flat]
    assert not missing, f"lacks {missing}:\n{printed}"
    after = tree(around)
    allowed = tuple(f"here/{name}" for name in row.writes)
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    strange = {name for name in changed if not (allowed and name.startswith(allowed))}
    assert not strange, f"written, changed or lost: {sorted(strange)}"


def variables(here: Path) -> dict[str, str]:
    """A shell's variables, whose home and endpoint are the row's own."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(NOT_OURS)}
    env |= {"HOME": str(here), "LOCAL_SAGEMAKER_STATE_DIR": str(here / "state"), "COLUMNS": "400"}
    env |= {"TMPDIR": str(here.parent.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    return env | {"PYTHONPATH": str(REPOSITORY), "AWS_EC2_METADATA_DISABLED": "true"}
