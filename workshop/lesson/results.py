"""`workshop.save_results`: what a notebook found, for whoever reads its executed copy.

The tests read it. Cells that only save and check results are tagged `results`, and folded.
"""

from __future__ import annotations

import json
from pathlib import Path

from workshop.output import in_notebook

MIME = "application/vnd.workshop.results+json"


def save_results(**values) -> None:
    """Keep named results (numbers, text, lists of them) in the cell's output, unseen.

    Raises TypeError for a value that JSON cannot hold. Outside a notebook it only checks that.
    """
    values = {name: _plain(value) for name, value in values.items()}
    json.dumps(values)
    if in_notebook():
        from IPython.display import display

        display({MIME: values}, raw=True)


def read_results(notebook: Path) -> dict:
    """All results saved in an executed notebook; the last value of each name."""
    results: dict = {}
    for cell in json.loads(Path(notebook).read_text())["cells"]:
        for output in cell.get("outputs", []):
            results |= output.get("data", {}).get(MIME, {})
    return results


def _plain(value):
    """numpy and pandas numbers as Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return value.item() if hasattr(value, "item") else value
