"""The bytes of a notebook that is made from a source: no outputs, the same ids every time."""

from __future__ import annotations

import hashlib

import nbformat

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
