"""Make notebooks/exercises/NN_name.ipynb from notebooks/solutions/NN_name.py.

An exercise is a text cell with a heading such as

    ## Exercise 01.1 · Share the data (5 minutes, easy)

and a hint in <details>, a code cell tagged `answer`, and one tagged `check`. In the answer the
lines from `# BEGIN SOLUTION` to `# END SOLUTION` become one line that raises NotImplementedError.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import jupytext
from nbformat import NotebookNode

from workshop.lesson.check import unanswered
from workshop.paths import NOTEBOOKS

SOLUTIONS = NOTEBOOKS / "solutions"
HEADING = re.compile(
    r"^## Exercise (?P<number>\d\d\.\d) · .+ \((?P<minutes>\d+) minutes?, (easy|medium|hard)\)$",
    re.MULTILINE,
)
SOLUTION = re.compile(r"^( *)# BEGIN SOLUTION\n.*?^\1# END SOLUTION", re.MULTILINE | re.DOTALL)
HOW = (
    "From the lesson [{stem}](../{stem}.ipynb). In each exercise write your code in place of the "
    "line `raise NotImplementedError(...)`, run the cell, then run the check below it. A check "
    "tells you what is wrong, as often as you like."
)


class BadSource(Exception):
    """A solutions file that no exercises can be made from; the message names file and remedy."""


@dataclass(frozen=True)
class Exercise:
    """An exercise: its number, as "01.2", its minutes, and its three cells."""

    number: str
    minutes: int
    text: NotebookNode
    answer: NotebookNode
    check: NotebookNode


def sources(folder: Path = SOLUTIONS) -> list[Path]:
    """The solutions files, in the order of their lessons."""
    return sorted(folder.glob("[0-9][0-9]_*.py"))


def exercises(source: Path) -> list[Exercise]:
    """The exercises of a solutions file. Raises BadSource."""
    return _exercises(jupytext.read(source, fmt="py:percent"), source)


def exercise_notebook(source: Path) -> NotebookNode:
    """The exercises' notebook. Raises BadSource."""
    notebook = jupytext.read(source, fmt="py:percent")
    for exercise in _exercises(notebook, source):
        exercise.answer.source = without_solution(exercise.answer.source, exercise.number)
    notebook.cells[0].source += "\n\n" + HOW.format(stem=source.stem)
    return notebook


def without_solution(code: str, number: str) -> str:
    """An answer cell's code with a `raise` line in place of each solution. Raises BadSource."""
    stub = SOLUTION.sub(rf'\1raise NotImplementedError("{unanswered(number)}")', code)
    if stub == code or re.search("# (BEGIN|END) SOLUTION", stub):
        raise BadSource(f"{number}: put its solution between `# BEGIN SOLUTION` and `# END ...`.")
    return stub


def _exercises(notebook: NotebookNode, source: Path) -> list[Exercise]:
    lesson = source.stem[:2]
    groups: list[list[NotebookNode]] = []
    for cell in notebook.cells:
        if re.search("^## Exercise", cell.source, re.MULTILINE):
            groups.append([cell])
        elif {"answer", "check"} & set(cell.metadata.get("tags", [])):
            groups = groups or [[]]
            groups[-1].append(cell)
    result = []
    for at, cells in enumerate(groups, 1):
        number = f"{lesson}.{at}"
        heading = HEADING.search(cells[0].source) if cells else None
        tags = [cell.metadata.get("tags", []) for cell in cells[1:]]
        if not heading or heading["number"] != number or tags != [["answer"], ["check"]]:
            raise BadSource(
                f"{source.name}: its exercise {at} must be a text that begins '## Exercise "
                f"{number} · Title (5 minutes, easy)', then a cell tagged answer, then one tagged "
                "check. The level is easy, medium or hard."
            )
        if "<summary>Hint</summary>" not in cells[0].source:
            raise BadSource(f"{source.name}, {number}: add <details><summary>Hint</summary> ...")
        if f'workshop.check("{number}"' not in cells[2].source:
            raise BadSource(f'{source.name}: its check must call workshop.check("{number}", ...).')
        result.append(Exercise(number, int(heading["minutes"]), *cells))
    if not result:
        raise BadSource(f"{source.name}: it has no '## Exercise {lesson}.1 ...'.")
    return result
