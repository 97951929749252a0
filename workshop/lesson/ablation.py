"""Ablation: show one marked step of a script as a diff, or make a copy that lacks some steps.

A line of the script that ends in `# STEP n` belongs to step n. Steps only add lines, so the
script without any of them is the script that one began with.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from workshop.lesson.show import body, in_markdown, read
from workshop.paths import DEMOS

MARK = re.compile(r"\s*# STEP (\d+)$")


def numbers(script: str) -> list[int]:
    """The steps of a script in scripts/demos/, in order. Raises ValueError if it has none."""
    steps = {int(mark[1]) for line in _lines(script) if (mark := MARK.search(line))}
    if not steps:
        raise ValueError(f"scripts/demos/{script} has no line that ends in # STEP and a number.")
    return sorted(steps)


def text_without(script: str, left_out: Iterable[int], marks: bool = True) -> str:
    """The script's text without the lines of these steps.

    marks: keep the comments `# STEP n` of the other lines. Raises ValueError for a step that
    the script does not have.
    """
    left_out = set(left_out)
    if unknown := left_out - set(numbers(script)):
        raise ValueError(
            f"scripts/demos/{script} has no step {sorted(unknown)}; it has {numbers(script)}."
        )
    lines = []
    for line in _lines(script):
        mark = MARK.search(line)
        if mark is None or int(mark[1]) not in left_out:
            lines.append(line if marks else MARK.sub("", line))
    text = re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)) + "\n"
    ast.parse(text)  # a step whose lines cannot go alone is a fault of the script
    return text


@contextlib.contextmanager
def without(script: str, *left_out: int) -> Iterator[Path]:
    """A copy of scripts/demos/ with `script` less these steps, as script_without_4.py: its path.

    The copy is gone at the end of the `with` block.
    """
    text = text_without(script, left_out)
    with tempfile.TemporaryDirectory(prefix="workshop-steps-") as folder:
        copy = Path(folder) / "demos"
        shutil.copytree(DEMOS, copy, ignore=shutil.ignore_patterns("__pycache__"))
        steps = "all" if set(left_out) == set(numbers(script)) else "_".join(map(str, left_out))
        lacking = copy / f"{Path(script).stem}_without_{steps}.py"
        lacking.write_text(text)
        yield lacking


def diff(script: str, *shown: int) -> str:
    """What these steps add to the script, in unified form; the steps before them are there.

    Where several are shown, each line that they add ends in its step's number: # (2).
    """
    later = {step for step in numbers(script) if step > max(shown)}
    old = body(text_without(script, later | set(shown), marks=False))
    new = [_numbered(line, shown) for line in body(text_without(script, later))]
    lines = list(difflib.unified_diff(old, new, n=1, lineterm=""))[2:]  # without file names
    return "\n".join("⋯" if line.startswith("@@") else line for line in lines)


def show_step(script: str, *shown: int):
    """A notebook's view of `diff`: lines with + belong to these steps, the others are around."""
    return in_markdown("diff", diff(script, *shown))


def _numbered(line: str, shown: tuple[int, ...]) -> str:
    """Without the mark of its step; with the step's number if it is one of several."""
    mark = MARK.search(line)
    if mark is None:
        return line
    number = f"  # ({mark[1]})" if len(shown) > 1 and int(mark[1]) in shown else ""
    return MARK.sub("", line) + number


def _lines(script: str) -> list[str]:
    return read(f"demos/{script}").splitlines()
