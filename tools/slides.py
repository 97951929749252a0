"""The slides: `make slides` builds a deck for each lesson that `make run` executed.

nbconvert's export to reveal.js makes a deck of the cells chosen here, in one HTML file that needs
no network (templates/slides). Of each section it has

- its question: the section's first paragraph, and the list that it announces;
- a slide for each thing that its cells show: the guesses that the lesson asks for, code, pictures,
  tables, short printed text, and the answers to the guesses.

So a lesson needs no marks for its slides. Change the lesson, run it, and build them again.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import nbconvert
import nbformat
from nbformat import NotebookNode
from traitlets.config import Config

from workshop.course import render
from workshop.course.lessons import NoRun, last_run, lessons
from workshop.course.pages import READER, SHOWN, read_for_people
from workshop.paths import BUILD

SLIDES = BUILD / "slides"
TEMPLATES = Path(__file__).with_name("templates")
# Sections of every lesson that a room does not look at together.
LEFT_OUT = {"Set up", "Exercises", "Check yourself", "Clean up", "Next"}
FOLDED = "results"  # the tag of cells that only save and check results
LINES = 14  # of printed text on one slide
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
GOALS = re.compile(r"\*\*After this lesson.*?\n\n((?:[-*] .*\n?(?:[ \t]+\S.*\n?)*)+)")
# What a job prints of itself while it runs: a slide shows what came out.
PROGRESS = re.compile(
    r"^\s*$|^[.!\s]+$|: (created|deleted|no change|up to date|sent \d)", re.MULTILINE
)
WAIT = re.compile(r"^About \d+ s \.\.\.\n", re.MULTILINE)


def build(executed: Path = BUILD, out: Path = SLIDES) -> tuple[Path, list[str]]:
    """Write out/NN_name.html for each executed lesson, and out/index.html.

    Returns the index, and the names of the lessons that were not executed and have no deck.
    Raises NoRun.
    """
    about = last_run(executed)
    run = f"Measured on {about['date']}, commit {about['commit']}, {about['machine']}"
    executed_lessons = [path for path in lessons() if (executed / path.name).exists()]
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    decks = []
    for path in executed_lessons:
        title, count = write_deck(executed / path.name, out / f"{path.stem}.html", run)
        decks.append((path.stem, title, count))
    index = out / "index.html"
    index.write_text(
        render("slides/decks.html.j2", TEMPLATES, run=run, decks=decks), encoding="utf-8"
    )
    return index, [path.stem for path in lessons() if path not in executed_lessons]


def write_deck(executed: Path, page: Path, run: str) -> tuple[str, int]:
    """Write one lesson's deck; returns its title and number of slides. run: a line on the run."""
    notebook = read_for_people(executed)
    # papermill puts a cell above a lesson that failed
    title, head = next(
        (match[1], match.string) for match in map(TITLE.search, _texts(notebook.cells)) if match
    )
    goals = GOALS.search(head)
    first = _slide(f"# {title}\n\n{goals[0] if goals else ''}\n<small>{run}</small>")
    notebook.cells = [first, *slides_of(notebook)]
    notebook.metadata["title"] = title
    exporter = nbconvert.SlidesExporter(
        template_name="slides",
        extra_template_basedirs=[str(TEMPLATES)],
        exclude_input=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
        config=Config({"NbConvertBase": {"display_data_priority": SHOWN}}),
    )
    deck, _ = exporter.from_notebook_node(notebook)
    page.write_text(deck, encoding="utf-8")
    return title, sum("slideshow" in cell.metadata for cell in notebook.cells)


def slides_of(notebook: NotebookNode) -> Iterator[NotebookNode]:
    """The cells of a lesson's slides, in the order of its sections; a marked one begins a slide."""
    for heading, cells in _sections(notebook.cells):
        if heading in LEFT_OUT:
            continue
        if heading == "Summary":
            yield _slide("\n\n".join(_texts(cells)))
        elif text := _first_paragraph(cells[0].source):
            yield _slide(f"## {heading}\n\n{text}")
        for cell in cells:
            if cell.cell_type == "code" and FOLDED not in cell.metadata.get("tags", []):
                for output in filter(_is_result, cell.outputs):
                    yield _slide(f"## {heading}")
                    yield nbformat.v4.new_code_cell(outputs=[output])


def _slide(text: str) -> NotebookNode:
    slideshow = {"slideshow": {"slide_type": "slide"}}
    return nbformat.v4.new_markdown_cell(text, metadata=slideshow)


def _texts(cells: list[NotebookNode]) -> list[str]:
    return [cell.source for cell in cells if cell.cell_type == "markdown"]


def _sections(cells: list[NotebookNode]) -> Iterator[tuple[str, list[NotebookNode]]]:
    """(heading, cells) of each second-level section; what is before the first is left out."""
    sections: list[list[NotebookNode]] = [[]]
    for cell in cells:
        if cell.cell_type == "code":
            sections[-1].append(cell)
            continue
        for part in re.split(r"^(?=## )", cell.source, flags=re.MULTILINE):
            sections += [[]] if part.startswith("## ") else []
            sections[-1].append(nbformat.v4.new_markdown_cell(part))
    for section in sections[1:]:
        yield section[0].source.splitlines()[0][3:].strip(), section


def _first_paragraph(text: str) -> str:
    """The text below a section's heading: a paragraph, and the list that it announces."""
    blocks = re.split(r"\n\s*\n", text.partition("\n")[2].strip())
    for at, block in enumerate(blocks):
        if block and not re.match(r"[>|#!-]|\d+\.", block):
            announced = blocks[at + 1 : at + 2] if block.rstrip().endswith(":") else []
            return "\n\n".join([block, *announced])
    return ""


def _is_result(output: NotebookNode) -> bool:
    """Whether an output is neither long text nor a report of progress."""
    if output.output_type != "stream":
        return output.output_type != "error"
    output.text = WAIT.sub("", output.text)
    short = len(output.text.strip().splitlines()) <= LINES
    result = short and not PROGRESS.search(output.text.strip())
    return output.name == "stdout" and (result or READER in output.text)


if __name__ == "__main__":
    try:
        index, missing = build()
    except NoRun as error:
        sys.exit(f"error: {error}")
    if missing:
        print(f"Not in the last run, so without a deck: {', '.join(missing)}", file=sys.stderr)
    print(index)
