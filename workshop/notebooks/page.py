"""The pages of a run: each executed notebook as HTML, and an index of them."""

from __future__ import annotations

import datetime
import html
import importlib.metadata
import platform
from dataclasses import dataclass
from pathlib import Path

import nbconvert
import nbformat

from workshop.recording import MIME

PACKAGES = ("sagemaker", "sagemaker-training", "tensorflow", "horovod", "torch", "moto")
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 3rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .4rem .8rem .4rem 0; border-bottom: 1px solid #ccc }
td.number { text-align: right; font-variant-numeric: tabular-nums }
tr.failed td { color: #b00020 }
small { color: #555 }
"""
# The exporter leaves code inside Markdown output in the font of the text around it.
CODE_FONT = "<style>.highlight pre { font-family: var(--jp-code-font-family) }</style></head>"


@dataclass(frozen=True)
class Row:
    """A notebook of a run. status: "ok", "failed" or "not run"."""

    name: str
    status: str
    seconds: float | None = None


def write_html(executed: Path) -> Path:
    """Write an executed notebook's page beside it."""
    notebook = nbformat.read(executed, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in code:  # recorded results are for programs, and no browser shows them
        cell.outputs = [one for one in cell.outputs if MIME not in one.get("data", {})]
    notebook.metadata["title"] = executed.stem
    body, _ = nbconvert.HTMLExporter(template_name="lab").from_notebook_node(notebook)
    page = executed.with_suffix(".html")
    page.write_text(body.replace("</head>", CODE_FONT, 1))
    return page


def write_index(folder: Path, rows: list[Row], target: str) -> Path:
    """Write folder/index.html: a line for each notebook, and what it ran on."""
    when = datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    total = sum(row.seconds or 0 for row in rows)
    lines = "\n".join(_line(folder, row) for row in rows)
    page = folder / "index.html"
    page.write_text(
        f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>The lessons, executed</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{STYLE}</style></head><body>
<h1>The lessons, executed</h1>
<p>Target: <b>{html.escape(target)}</b>. {when}. {total:.0f} s in all.</p>
<table><tr><th>lesson</th><th>result</th><th>seconds</th></tr>
{lines}
</table>
<p><small>{html.escape(versions())}</small></p>
</body></html>
"""
    )
    return page


def versions() -> str:
    """Python, the system and the packages that matter, in one line."""
    found = [f"Python {platform.python_version()}", f"{platform.system()} {platform.machine()}"]
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def _line(folder: Path, row: Row) -> str:
    name = html.escape(row.name)
    shown = f'<a href="{name}.html">{name}</a>' if (folder / f"{row.name}.html").exists() else name
    seconds = "" if row.seconds is None else f"{row.seconds:.1f}"
    return (
        f'<tr class="{row.status.replace(" ", "-")}"><td>{shown}</td><td>{row.status}</td>'
        f'<td class="number">{seconds}</td></tr>'
    )
