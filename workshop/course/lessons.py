"""Which lessons there are, and the reference: a notebook to copy from, which is run with them.

It has no number, so nobody asks it for what every lesson has: exercises, a quiz, a place in a plan.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from workshop.paths import NOTEBOOKS

NAME = re.compile(r"(\d\d)_[a-z0-9_]+")
REFERENCE = "reference"
CLEAN_UP = "99"


class NoRun(Exception):
    """No lessons were executed there; the message says what to do."""


class NoSuchLesson(Exception):
    """A number that no lesson has; the message lists those that there are."""


def lessons(folder: Path = NOTEBOOKS) -> list[Path]:
    """The lessons' .ipynb files, in the order of their numbers."""
    return sorted(path for path in folder.glob("*.ipynb") if NAME.fullmatch(path.stem))


def number(path: Path) -> str:
    """The two digits that a lesson's name begins with."""
    return path.stem[:2]


def chosen(numbers: tuple[str, ...], folder: Path = NOTEBOOKS) -> list[Path]:
    """The lessons with these numbers ("5" or "05"), in their order; all if none is given.

    "reference" is the reference notebook, which comes before the clean-up.
    """
    by_number = {number(path): path for path in lessons(folder)}
    if not by_number:
        raise NoSuchLesson(f"There are no lessons (NN_name.ipynb) in {folder}.")
    reference = folder / f"{REFERENCE}.ipynb"
    if reference.exists():
        by_number[REFERENCE] = reference
    selected = sorted(
        {name.zfill(2) for name in numbers} or by_number, key=lambda name: (name == CLEAN_UP, name)
    )
    unknown = [name for name in selected if name not in by_number]
    if unknown:
        raise NoSuchLesson(f"No lesson {', '.join(unknown)}. There are: {', '.join(by_number)}.")
    return [by_number[name] for name in selected]


def last_run(folder: Path) -> dict:
    """What `workshop run` wrote of its run there: date, commit, machine, ... Raises NoRun."""
    try:
        return json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NoRun(f"There is no run in {folder}: run `make run` first.") from None
