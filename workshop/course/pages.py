"""The pages of a run: each executed notebook as HTML, and an index of them."""

from __future__ import annotations

import datetime
import html
import os
import re
import urllib.parse
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path

import nbconvert
import nbformat
from traitlets.config import Config

from workshop.course import TEMPLATES, render
from workshop.lesson.guess import ASKS
from workshop.lesson.results import MIME
from workshop.lesson.show import versions
from workshop.paths import NOTEBOOKS

# A page has no kernel and no network, so widgets and programs in outputs cannot live in it:
# what they show without a browser is shown.
SHOWN = ["text/html", "text/markdown", "image/svg+xml", "image/png", "image/jpeg", "text/plain"]
# How a notebook asks for a guess: a reader of its page has no cell to answer in.
READER = "What is your guess? Write it down before you read on."
FIELD = re.compile(r'^    guess\["\w+"\] = ?(?P<choice>.*)$', re.MULTILINE)
HREF = re.compile(r'href="(?!https?:|mailto:|data:|#)([^"#]+)(#[^"]*)?"')


@dataclass(frozen=True)
class Row:
    """A notebook of a run. status: "ok", "failed" or "not run"."""

    name: str
    status: str
    seconds: float | None = None


def write_html(
    executed: Path,
    row: Row,
    target: str,
    folder: Path = NOTEBOOKS,
    pages: Collection[str] = (),
) -> Path:
    """Write an executed notebook's page beside it: one file, which needs no network.

    row: how its run went. folder: where the notebook came from; links to files are relative to
    it. pages: the stems of the lessons whose pages lie beside this one; links to them lead there.
    """
    notebook = read_for_people(executed)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    notebook.cells = [cell for cell in notebook.cells if not _repeats(cell, code)]
    notebook.metadata["title"] = executed.stem
    exporter = nbconvert.HTMLExporter(
        template_name="lesson",
        extra_template_basedirs=[str(TEMPLATES)],
        config=Config({"NbConvertBase": {"display_data_priority": SHOWN}}),
    )
    seconds = "" if row.seconds is None else f" in {row.seconds:.1f} s"
    run = f"{row.name}: {row.status}{seconds}, target {target}, {now()}"
    body, _ = exporter.from_notebook_node(notebook, {"run": run})
    page = executed.with_suffix(".html")
    page.write_text(HREF.sub(lambda match: _moved(match, page.parent, folder, pages), body))
    return page


def read_for_people(executed: Path) -> nbformat.NotebookNode:
    """An executed notebook as a page shows it.

    It lacks what only programs read (saved results, widgets' state), and asks for guesses on paper.
    """
    notebook = nbformat.read(executed, as_version=4)
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if MIME not in output.get("data", {})]
            for output in cell.outputs:
                _ask_a_reader(output)
    return notebook


def _ask_a_reader(output: nbformat.NotebookNode) -> None:
    """Where an output is a question of `workshop.guess`, leave out how to answer it in a cell."""
    place, key = (output.get("data", {}), "text/plain") if "data" in output else (output, "text")
    text = "".join(place.get(key, ""))
    if ASKS in text:
        place[key] = FIELD.sub(r"    \g<choice>", text.replace(ASKS, READER))


def _repeats(cell, code: list) -> bool:
    """Whether a cell is papermill's, with parameters, and changes none of the lesson's own."""
    tags = {tag: other for other in reversed(code) for tag in other.metadata.get("tags", [])}
    parameters, injected = tags.get("parameters"), tags.get("injected-parameters")
    if parameters is None or injected is None or cell is not injected:
        return False
    return set(injected.source.splitlines()) <= {"# Parameters", *parameters.source.splitlines()}


def _moved(match: re.Match, out: Path, folder: Path, pages: Collection[str]) -> str:
    """A link of a notebook in `folder`, as it must be in a page in `out`."""
    path, mark = Path(urllib.parse.unquote(html.unescape(match[1]))), match[2] or ""
    if str(path.parent) == "." and path.suffix == ".ipynb" and path.stem in pages:
        return f'href="{path.stem}.html{mark}"'
    if (folder / path).exists():
        return f'href="{urllib.parse.quote(os.path.relpath(folder / path, out))}{mark}"'
    return match[0]


def now() -> str:
    """The time of day where this machine is, to the minute."""
    return datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")


def write_index(folder: Path, rows: list[Row], target: str) -> Path:
    """Write folder/index.html: a line for each notebook, and what it ran on."""
    shown = [
        asdict(row)
        | {
            "title": _title(folder / f"{row.name}.ipynb"),
            "page": (folder / f"{row.name}.html").exists(),
        }
        for row in rows
    ]
    total = sum(row.seconds or 0 for row in rows)
    page = folder / "index.html"
    page.write_text(
        render(
            "run.html.j2", target=target, now=now(), total=total, rows=shown, versions=versions()
        )
    )
    return page


def _title(executed: Path) -> str:
    """An executed notebook's first heading; its name where there is none."""
    text = nbformat.read(executed, as_version=4).cells[0].source if executed.exists() else ""
    heading = re.match(r"# (.+)", text)
    return heading[1] if heading else executed.stem
