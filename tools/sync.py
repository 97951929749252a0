"""Make everything that has a source from it.

    python -m tools.sync            # write what is out of step
    python -m tools.sync 01 02      # only these lessons
    python -m tools.sync --check    # write nothing; exit status 1 if out of step

- NN_name.ipynb from NN_name.py, lessons and solutions, and sdk_v3/sdk_v3.ipynb,
  with the code for version 3 of the SDK in the place of its marks (workshop/jobs/sdk_v3.py);
- exercises/NN_name.ipynb from solutions/NN_name.py;
- docs/teaching/quiz_answers.md and before_and_after.md from notebooks/quiz/;
- the tables of docs/teaching/guide.md from tools/plan.toml and the lessons;
- the scripts in cloudformation/notebook.yaml from cloudformation/notebook/.

jupytext reads the sources. It would give new cells new ids in each run; here the same source always
gives the same bytes. A notebook has the outputs of its cells tagged `deterministic` alone: they are
the same on every machine. A test compares them with those of an executed lesson, and renews them.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

import jupytext
import nbformat

from tools import exercises, notebook_template, tables
from workshop.jobs import sdk_v3
from workshop.paths import NOTEBOOKS

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def as_text(notebook: nbformat.NotebookNode) -> str:
    """The text of the .ipynb, with the kernel that it names. A cell's id is made from its text."""
    kernel = dict(notebook.metadata.get("kernelspec", KERNEL))
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": kernel, "language_info": {"name": "python"}}
    )
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:12]
        seen[digest] = seen.get(digest, 0) + 1
        cell.id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def as_notebook(source: Path) -> str:
    """The text of the .ipynb that belongs to a py:percent source, with the outputs that it has."""
    notebook, pair = jupytext.read(source, fmt="py:percent"), source.with_suffix(".ipynb")
    lesson = source.stem[:2] if source.stem[0].isdecimal() else source.stem
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = sdk_v3.MARK.sub(lambda mark: sdk_v3.block(lesson, mark[1]), cell.source)
    if pair.is_file() and deterministic_cells(notebook):
        copy_outputs(nbformat.read(pair, as_version=4), notebook)
    return as_text(notebook)


def deterministic_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """The cells that show the same on every machine and in every run."""
    return [cell for cell in notebook.cells if "deterministic" in cell.metadata.get("tags", [])]


def copy_outputs(source: nbformat.NotebookNode, target: nbformat.NotebookNode) -> None:
    """Give the deterministic cells of `target` the outputs of those of `source`, one by one.

    Texts and tables only. Where their number differs, a cell is known by its text.
    """
    old, new = deterministic_cells(source), deterministic_cells(target)
    if len(old) != len(new):
        by_text = {cell.source: cell for cell in old}
        old = [by_text.get(cell.source, nbformat.v4.new_code_cell()) for cell in new]
    for cell, shown in zip(new, old, strict=True):
        cell.outputs = [_as_committed(output) for output in shown.outputs]


def _as_committed(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    if output.output_type == "stream":
        return nbformat.v4.new_output("stream", name=output.name, text=output.text)
    data = {mime: output.data[mime] for mime in ("text/html", "text/plain") if mime in output.data}
    return nbformat.v4.new_output("display_data", data)


def everything(numbers: tuple[str, ...] = (), folder: Path = NOTEBOOKS) -> dict[Path, str]:
    """Every file that is made from a source, and the text it must have.

    numbers: only these lessons' notebooks; all, and the other files, if there are none.
    Raises BadSource, BadPlan for a source that nothing can be made from.
    """
    made = {}
    sources = ("*.py", "solutions/*.py", "sdk_v3/sdk_v3.py")
    for source in (path for pattern in sources for path in folder.glob(pattern)):
        if not numbers or source.stem[:2] in numbers:
            made[source.with_suffix(".ipynb")] = as_notebook(source)
            if source.parent.name == "solutions":
                pair = folder / "exercises" / f"{source.stem}.ipynb"
                made[pair] = as_text(exercises.exercise_notebook(source))
    return made if numbers else made | tables.pages() | notebook_template.pages()


def out_of_step(made: dict[Path, str]) -> list[Path]:
    """The files that are missing or have another text than they must have."""
    return [path for path, text in made.items() if not path.is_file() or path.read_text() != text]


def has_work(path: Path) -> bool:
    """Whether somebody has worked on these exercises: their answers must not be lost."""
    if path.parent.name != "exercises" or not path.is_file():
        return False
    code = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    return any(cell.execution_count is not None or cell.outputs for cell in code)


def write(made: dict[Path, str], force: bool = False) -> bool:
    """Write what is out of step, and say so; return whether everything is in step then.

    Exercises that somebody has worked on are kept, unless `force` is given.
    """
    complete = True
    for path in out_of_step(made):
        name = f"{path.parent.name}/{path.name}"
        if has_work(path) and not force:
            complete = False
            print(f"{name}: kept, it has outputs. --force overwrites it, answers and all.")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(made[path])
        print(f"{name}: written")
    return complete


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(description="Make what has a source in notebooks/.")
    parser.add_argument("numbers", nargs="*", help="lessons, as 01; all if none is given")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if out of step")
    parser.add_argument("--force", action="store_true", help="overwrite answered exercises too")
    chosen = parser.parse_args(arguments)
    try:
        made = everything(tuple(chosen.numbers))
    except (exercises.BadSource, tables.BadPlan) as error:
        print(error, file=sys.stderr)
        return 1
    if not chosen.check:
        return 0 if write(made, chosen.force) else 1
    stale = out_of_step(made)
    for path in stale:
        print(f"{path.parent.name}/{path.name}: out of step")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
