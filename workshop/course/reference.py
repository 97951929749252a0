"""Record what the lessons' deterministic cells show, for nbval to compare with.

    python -m workshop.course.reference            # record what is out of step
    python -m workshop.course.reference --check    # only say so; exit status 1
    pytest --nbval --nbval-current-env tests/nbval    # run them and compare

The lessons themselves are committed without outputs. A cell tagged `deterministic` shows the
same on every machine and in every run. For each lesson with such cells tests/nbval holds a
smaller notebook: these cells, with what they showed, and the cells that they need, without.
nbval runs all of them, and compares those that have an output.
"""

from __future__ import annotations

import argparse
import ast
import symtable
import sys
from pathlib import Path

import nbclient
import nbformat

from workshop.course.execute import prefer_own_kernel
from workshop.course.lessons import lessons
from workshop.course.writing import KERNEL
from workshop.paths import ROOT

REFERENCES = ROOT / "tests" / "nbval"
TAG = "deterministic"
CELL_SECONDS = 300


def cut(lesson: Path) -> nbformat.NotebookNode | None:
    """The cells tagged `deterministic` and those they need, or None where there is no such cell.

    A cell is needed when it sets, or stores into, a name that a kept cell uses.
    """
    code = [cell for cell in nbformat.read(lesson, as_version=4).cells if cell.cell_type == "code"]
    used, kept = set(), []
    for cell in reversed(code):
        uses, sets = names(cell.source)
        if is_checked(cell) or sets & used:
            used |= uses
            kept.insert(0, cell)
    if not any(map(is_checked, kept)):
        return None
    for cell in kept:
        cell.outputs, cell.execution_count = [], None
    return nbformat.v4.new_notebook(cells=kept, metadata={"kernelspec": KERNEL})


def is_checked(cell) -> bool:
    """Whether this cell's output is compared."""
    return TAG in cell.metadata.get("tags", [])


def names(source: str) -> tuple[set[str], set[str]]:
    """(used, set): the global names that a cell reads, and those that it sets or stores into."""
    top = symtable.symtable(source, "cell", "exec")
    stored = {one.get_name() for one in top.get_symbols() if one.is_assigned() or one.is_imported()}
    used = {one.get_name() for one in top.get_symbols() if one.is_referenced()}
    inner = list(top.get_children())
    while inner:
        scope = inner.pop()
        inner += scope.get_children()
        used |= {one.get_name() for one in scope.get_symbols() if one.is_global()}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            stored |= {one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)}
    return used, stored


def record(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run a notebook in `folder` and keep the outputs of its deterministic cells.

    Raises nbclient.exceptions.CellExecutionError where a cell fails: one that it needs may not
    be in it, because it changes something without setting a name.
    """
    prefer_own_kernel()
    client = nbclient.NotebookClient(
        notebook, timeout=CELL_SECONDS, resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if not is_checked(cell):
            cell.outputs, cell.execution_count = [], None
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL})


def out_of_step(lesson: Path, folder: Path = REFERENCES) -> bool:
    """Whether the reference in `folder` is missing, left over, or has other cells."""
    wanted, path = cut(lesson), folder / lesson.name
    if wanted is None or not path.is_file():
        return (wanted is None) == path.is_file()
    found = nbformat.read(path, as_version=4)
    unrecorded = any(is_checked(cell) and cell.execution_count is None for cell in found.cells)
    return unrecorded or _form(found) != _form(wanted)


def _form(notebook: nbformat.NotebookNode) -> list[tuple[str, bool]]:
    return [(cell.source, is_checked(cell)) for cell in notebook.cells]


def write(lesson: Path, folder: Path = REFERENCES) -> None:
    """Record a lesson's reference anew; remove one that the lesson no longer needs."""
    notebook, path = cut(lesson), folder / lesson.name
    path.unlink(missing_ok=True)
    if notebook is not None:
        record(notebook, folder)
        nbformat.write(notebook, path)


def main() -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(description="Record what deterministic cells show.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if out of step")
    arguments = parser.parse_args()
    stale = [lesson for lesson in lessons() if out_of_step(lesson)]
    for lesson in stale:
        if not arguments.check:
            write(lesson)
        print(f"{lesson.stem}: {'out of step' if arguments.check else 'recorded'}")
    return 1 if stale and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
