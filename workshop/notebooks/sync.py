"""Make each lesson's .ipynb from its .py, the source.

    python -m workshop.notebooks.sync            # write what is out of step
    python -m workshop.notebooks.sync --check    # only say so; exit status 1

The .ipynb has no outputs. A cell's id is made from its text, so that the same source always
gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

import jupytext
import nbformat

from workshop.paths import NOTEBOOKS

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def sources(folder: Path = NOTEBOOKS) -> list[Path]:
    """Every py:percent source under a folder."""
    return sorted(path for path in folder.rglob("*.py") if "# %%" in path.read_text())


def as_notebook(source: Path) -> str:
    """The text of the .ipynb that belongs to a py:percent source."""
    notebook = jupytext.read(source, fmt="py:percent")
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    )
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:12]
        seen[digest] = seen.get(digest, 0) + 1
        cell.id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def out_of_step(folder: Path = NOTEBOOKS) -> list[Path]:
    """The sources whose .ipynb is missing or is not what they make."""
    return [
        source
        for source in sources(folder)
        if not (pair := source.with_suffix(".ipynb")).is_file()
        or pair.read_text() != as_notebook(source)
    ]


def main() -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(description="Make each lesson's .ipynb from its .py.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if out of step")
    arguments = parser.parse_args()
    stale = out_of_step()
    for source in stale:
        if not arguments.check:
            source.with_suffix(".ipynb").write_text(as_notebook(source))
        print(f"{source.name}: {'out of step' if arguments.check else 'made its .ipynb'}")
    return 1 if stale and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
