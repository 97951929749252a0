"""Make notebooks/exercises/NN_name.ipynb from notebooks/solutions/NN_name.py.

In a cell tagged `answer` the lines from `# BEGIN SOLUTION` to `# END SOLUTION` become one line
that raises NotImplementedError. The command is `python -m workshop.course.sync`.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import jupytext
import nbformat

from workshop.course.writing import as_text
from workshop.lesson.check import unanswered
from workshop.paths import NOTEBOOKS

SOLUTIONS = NOTEBOOKS / "solutions"
HEADING = re.compile(
    r"^## Exercise (?P<number>\d\d\.\d) · (?P<title>.+) "
    r"\((?P<minutes>\d+) minutes?, (?P<level>easy|medium|hard)\)$",
    re.MULTILINE,
)
HINT = re.compile(r"<details>\s*<summary>Hint</summary>.*\S.*</details>", re.DOTALL)
BEGIN, END = "# BEGIN SOLUTION", "# END SOLUTION"
HOW = (
    "From the lesson [{stem}](../{stem}.ipynb). In each exercise write your code in place of the "
    "line `raise NotImplementedError(...)`, run the cell, then run the check below it. A check "
    "tells you what is wrong, as often as you like."
)


class BadSource(Exception):
    """A solutions file that no exercises can be made from; the message names file and remedy."""


@dataclass(frozen=True)
class Exercise:
    """One exercise of a solutions file. answer, check: the source of its two tagged cells."""

    number: str
    title: str
    minutes: int
    level: str
    answer: str
    check: str


def sources(folder: Path = SOLUTIONS) -> list[Path]:
    """The solutions files, in the order of their lessons."""
    return sorted(folder.glob("[0-9][0-9]_*.py"))


def exercises(source: Path) -> list[Exercise]:
    """The exercises of a solutions file. Raises BadSource."""
    found, open_at, parts = [], None, {}
    notebook = _read(source)
    for cell in notebook.cells:
        heading = HEADING.search(cell.source) if cell.cell_type == "markdown" else None
        if heading or cell.source.startswith("## Exercise"):
            if open_at:
                found.append(_finished(source, open_at, parts))
            open_at, parts = _opened(source, cell.source, heading), {}
        for tag in {"answer", "check"} & set(cell.metadata.get("tags", [])):
            _take(source, open_at, parts, tag, cell)
    if open_at:
        found.append(_finished(source, open_at, parts))
    expected = [f"{source.stem[:2]}.{count}" for count in range(1, len(found) + 1)]
    if not found or [one.number for one in found] != expected:
        numbers = ", ".join(one.number for one in found) or "none"
        raise BadSource(
            f"{source.name}: its exercises must be numbered {source.stem[:2]}.1, "
            f"{source.stem[:2]}.2 and so on; found: {numbers}."
        )
    return found


def exercise_notebook(source: Path) -> str:
    """The text of the exercises' .ipynb. Raises BadSource."""
    numbers = iter(exercises(source))
    notebook = _read(source)
    notebook.cells[0].source += "\n\n" + HOW.format(stem=source.stem)
    for cell in notebook.cells:
        if "answer" in cell.metadata.get("tags", []):
            cell.source = without_solution(cell.source, next(numbers).number, source.name)
    return as_text(notebook)


def without_solution(code: str, number: str, name: str = "the cell") -> str:
    """An answer cell's code with a `raise` line in place of each marked part.

    Raises BadSource if the markers do not pair, or if the code before or after is no Python.
    """
    kept, indent = [], None
    for line in code.splitlines():
        marker = line.strip()
        if marker == BEGIN and indent is None:
            indent = line[: len(line) - len(line.lstrip())]
            kept.append(f'{indent}raise NotImplementedError("{unanswered(number)}")')
        elif marker == END and indent is not None:
            indent = None
        elif marker in (BEGIN, END):
            raise BadSource(f"{name}, {number}: {marker!r} where the other marker was expected.")
        elif indent is None:
            kept.append(line)
    if indent is not None:
        raise BadSource(f"{name}, {number}: {BEGIN!r} without {END!r}.")
    if code.count(BEGIN) == 0:
        raise BadSource(f"{name}, {number}: its answer cell has no {BEGIN!r}.")
    stub = "\n".join(kept)
    for text, what in ((code, "the solution"), (stub, "what is left without the solution")):
        try:
            ast.parse(text)
        except SyntaxError as error:
            raise BadSource(f"{name}, {number}: {what} is no valid Python: {error}") from None
    return stub


def pages(found: list[Path] | None = None) -> dict[Path, str]:
    """The exercises notebook of each solutions file, and the text it must have.

    found: which solutions files; all if not given. Raises BadSource.
    """
    found = sources() if found is None else found
    return {
        one.parent.with_name("exercises") / f"{one.stem}.ipynb": exercise_notebook(one)
        for one in found
    }


def _read(source: Path) -> nbformat.NotebookNode:
    notebook = jupytext.read(source, fmt="py:percent")
    first = notebook.cells[0] if notebook.cells else None
    start = f"# {source.stem[:2]} · "
    if first is None or first.cell_type != "markdown" or not first.source.startswith(start):
        raise BadSource(f"{source.name}: its first cell must be a text that begins {start!r}.")
    return notebook


def _opened(source: Path, text: str, heading: re.Match | None) -> re.Match:
    if heading is None:
        raise BadSource(
            f"{source.name}: {text.splitlines()[0]!r} must be of the form "
            "'## Exercise 01.1 · Title (5 minutes, easy)'; easy, medium or hard."
        )
    if not HINT.search(text):
        raise BadSource(
            f"{source.name}, {heading['number']}: no hint. Add "
            "<details><summary>Hint</summary> a text </details> to its text cell."
        )
    return heading


def _take(source: Path, heading: re.Match | None, parts: dict, tag: str, cell) -> None:
    if heading is None:
        raise BadSource(f"{source.name}: a cell tagged {tag!r} stands before the first exercise.")
    where = f"{source.name}, {heading['number']}"
    if tag in parts:
        raise BadSource(f"{where}: it has two cells tagged {tag!r}; it must have one.")
    if tag == "check" and "answer" not in parts:
        raise BadSource(f"{where}: its check cell stands before its answer cell.")
    if tag == "check" and f'workshop.check("{heading["number"]}"' not in cell.source:
        raise BadSource(f'{where}: its check cell must call workshop.check("{heading["number"]}".')
    parts[tag] = cell.source


def _finished(source: Path, heading: re.Match, parts: dict) -> Exercise:
    for tag in ("answer", "check"):
        if tag not in parts:
            raise BadSource(f"{source.name}, {heading['number']}: no code cell tagged {tag!r}.")
    without_solution(parts["answer"], heading["number"], source.name)
    return Exercise(
        number=heading["number"],
        title=heading["title"],
        minutes=int(heading["minutes"]),
        level=heading["level"],
        **parts,
    )
