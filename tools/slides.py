"""The slides: `make slides` builds decks of the lessons that `make run` executed.

nbconvert's export to reveal.js takes the cells whose metadata say so, in JupyterLab's own way:
`# %% slideshow={"slide_type": "slide"}`. A lesson has a deck of its own, and each timetable of
plan.toml has one with its lessons. CONTRIBUTING.md says how to choose cells.
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

from tools.exercises import SOLUTIONS, exercises
from tools.tables import Timetable, planned
from workshop.course import render
from workshop.course.lessons import NoRun, last_run, lessons, number
from workshop.course.pages import SHOWN, read_for_people
from workshop.lesson import quiz
from workshop.paths import BUILD, TEACHING

SLIDES = BUILD / "slides"
TEMPLATES = Path(__file__).with_name("templates")
HEADING = re.compile(r"^##+ .+$", re.MULTILINE)
BEGINS = ("slide", "subslide")
BLOCK = re.compile(r"(Exercise )?(\d\d)(\.\d)?")  # how a block of a timetable names its lesson
SAY = re.compile(r"^\| (\d\d) \| .+ \(`(\w+)`\) \| (.+) \| \*(.+)\* \|$", re.MULTILINE)


def build(executed: Path = BUILD, out: Path = SLIDES) -> tuple[Path, list[str]]:
    """Write out/NN_name.html for each executed lesson, a deck for each timetable, and an index.

    Returns the index, and the names of the lessons that were not executed. Raises NoRun.
    """
    about = last_run(executed)
    run = f"Measured on {about['date']}, commit {about['commit']}, {about['machine']}"
    there = {number(path): executed / path.name for path in lessons()}
    missing = [path.stem for path in there.values() if not path.exists()]
    decks = {path.stem: lesson_cells(path) for path in there.values() if path.exists()}
    for table in planned():
        decks[table.name.lower().replace(" ", "-")] = list(timetable_cells(table, there))
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for name, cells in decks.items():
        cells[0].source += f"\n\n<small>{run}</small>"
        write_deck(cells, out / f"{name}.html")
    index = out / "index.html"
    counted = {name: (title(cells), slides(cells)) for name, cells in decks.items()}
    index.write_text(render("slides/decks.html.j2", TEMPLATES, run=run, decks=counted), "utf-8")
    return index, missing


def write_deck(cells: list[NotebookNode], page: Path) -> None:
    """Write a deck, in one file that needs no network."""
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"title": title(cells)})
    exporter = nbconvert.SlidesExporter(
        template_name="slides",
        extra_template_basedirs=[str(TEMPLATES)],
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
        config=Config(
            {
                "NbConvertBase": {"display_data_priority": SHOWN},
                "CSSHTMLHeaderPreprocessor": {"style": "default"},
            }
        ),
    )
    page.write_text(exporter.from_notebook_node(notebook)[0], encoding="utf-8")


def title(cells: list[NotebookNode]) -> str:
    """A deck's title: its first heading."""
    return cells[0].source.splitlines()[0].lstrip("# ")


def slides(cells: list[NotebookNode]) -> int:
    """How many slides a deck has."""
    return sum(cell.metadata.slideshow.slide_type in BEGINS for cell in cells)


def lesson_cells(executed: Path) -> list[NotebookNode]:
    """The cells of an executed lesson's deck: those of its slides, and the chosen exercise."""
    solutions = exercises(SOLUTIONS / f"{executed.stem}.py")
    return [*chosen(executed), *(e.text for e in solutions if "slideshow" in e.text.metadata)]


def chosen(executed: Path) -> Iterator[NotebookNode]:
    """The cells of a lesson that are on slides.

    A slide without a heading gets its section's. A code cell shows its outputs or, if it has none,
    its code. A quiz is one question; a guess has the guide's words as speaker notes.
    """
    guide = SAY.findall((TEACHING / "guide.md").read_text(encoding="utf-8"))
    say = {key: text for lesson, key, *text in guide if lesson == number(executed)}
    heading = ""
    for cell in read_for_people(executed).cells:
        is_text = cell.cell_type == "markdown"
        headings = HEADING.findall(cell.source) if is_text else []
        kind = cell.metadata.get("slideshow", {}).get("slide_type")
        if kind in BEGINS and not (is_text and cell.source.startswith("#")):
            yield _text(heading, kind)
            cell.metadata.slideshow.slide_type = "-"
        if "question" in cell.metadata:
            question = quiz.load(number(executed))[cell.metadata.question - 1]
            shown = {"text/html": quiz.as_html([question])}
            cell.outputs = [nbformat.v4.new_output("display_data", shown)]
        if kind:
            cell.source = cell.source.partition("\n\n**Before:**")[0]
            cell.metadata.transient = {"remove_source": bool(cell.get("outputs"))}
            yield cell
            for key, (guess, words) in say.items():
                if "workshop.guess(" in cell.source and re.search(
                    rf'\b{key}=|"{key}"', cell.source
                ):
                    yield _text(f"`{key}`: people guess {guess}. {words}", "notes")
        heading = headings[-1] if headings else heading


def timetable_cells(table: Timetable, executed: dict[str, Path]) -> Iterator[NotebookNode]:
    """A title slide for each block; after it the slides of its lesson, or its exercise.

    executed: by its number each lesson's notebook, if it was run.
    """
    yield _text(f"# {table.name}\n\n{table.why}")
    for block in (block for day in table.days for block in day):
        yield _text(f"# {block.title}\n\n{block.minutes} minutes")
        if named := BLOCK.match(block.title):
            lesson = executed[named[2]]
            if named[1]:
                solutions = {e.number: e.text for e in exercises(SOLUTIONS / f"{lesson.stem}.py")}
                yield _text(solutions[named[2] + named[3]].source)
            elif lesson.exists():
                yield from chosen(lesson)


def _text(source: str, kind: str = "slide") -> NotebookNode:
    return nbformat.v4.new_markdown_cell(source, metadata={"slideshow": {"slide_type": kind}})


if __name__ == "__main__":
    try:
        index, missing = build()
    except NoRun as error:
        sys.exit(f"error: {error}")
    if missing:
        print(f"Not in the last run, so without slides: {', '.join(missing)}", file=sys.stderr)
    print(index)
