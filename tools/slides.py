"""The slides: `make slides` builds a deck for each lesson that `make run` executed.

A deck is one HTML file that needs no network: reveal.js is inside it. Of each section it has

- its question: the section's first paragraph, and the guesses that the lesson asks for;
- what its cells show, in their order: code, pictures, tables and short printed text;
- the answers to the guesses.

So a lesson needs no marks for its slides. Change the lesson, run it, and build them again.
"""

from __future__ import annotations

import html
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup
from nbconvert.filters import markdown2html

from workshop.course import render
from workshop.course.lessons import NoRun, last_run, lessons
from workshop.lesson.results import MIME
from workshop.paths import BUILD

SLIDES = BUILD / "slides"
TEMPLATES = Path(__file__).with_name("templates")
# Sections of every lesson that a room does not look at together.
LEFT_OUT = {"Set up", "Exercises", "Check yourself", "Clean up", "Next"}
FOLDED = "results"  # the tag of cells that only save and check results
ROWS, LINES, POINTS = 14, 14, 7  # of a table, of printed text and of a list on one slide
CODE = re.compile(r"(.*?)```\w+\n(.*)\n```\s*", re.DOTALL)  # what show_function and show_diff show
CODE_LINES = 24  # of it on one slide
FOLDED_AWAY = re.compile(r"<details>.*?</details>", re.DOTALL)
PARTS = ("reveal.css", "slides.css", "reveal.js", "slides.js")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\([^)]*\)")  # where a slide leads nowhere
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
# What a job prints of itself while it runs: a slide shows what came out.
PROGRESS = re.compile(
    r"^\s*$|^[.!\s]+$|: (created|deleted|no change|up to date|sent \d)", re.MULTILINE
)
WAIT = re.compile(r"^About \d+ s \.\.\.\n", re.MULTILINE)


@dataclass(frozen=True)
class Slide:
    """kind: "question", "picture", "result", "text", "answer" or "summary". body: HTML.

    A text is a result that was only printed.
    """

    kind: str
    heading: str
    body: str


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
        render("slides/index.html.j2", TEMPLATES, run=run, decks=decks), encoding="utf-8"
    )
    return index, [path.stem for path in lessons() if path not in executed_lessons]


def write_deck(executed: Path, page: Path, run: str) -> tuple[str, int]:
    """Write one lesson's deck; returns its title and number of slides. run: a line on the run."""
    notebook = nbformat.read(executed, as_version=4)
    texts = (cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    # papermill puts a cell above a lesson that failed
    title, head = next((match[1], match.string) for match in map(TITLE.search, texts) if match)
    slides = list(slides_of(notebook))
    parts = {name: (TEMPLATES / "slides" / name).read_text(encoding="utf-8") for name in PARTS}
    page.write_text(
        render(
            "slides/deck.html.j2",
            TEMPLATES,
            title=title,
            goals=_goals(head),
            run=run,
            slides=slides,
            reveal_css=parts["reveal.css"],
            css=parts["slides.css"],
            reveal_js=parts["reveal.js"],
            js=parts["slides.js"],
        ),
        encoding="utf-8",
    )
    return title, len(slides) + 1


def slides_of(notebook: nbformat.NotebookNode) -> Iterator[Slide]:
    """A lesson's slides, in the order of its sections."""
    asked_before: list = []
    answered: set[str] = set()
    for heading, cells in _sections(notebook.cells):
        saved = _saved([cell for cell in cells if cell.cell_type == "code"])
        questions = [pair for pair in saved.get("asked", []) if pair not in asked_before]
        asked_before += questions
        true_answers = saved.get("answers", {})
        answers = {
            q: true_answers[q] for q, _ in asked_before if q in true_answers and q not in answered
        }
        answered |= set(answers)
        if heading == "Summary":
            yield from _summary(heading, cells)
        elif heading not in LEFT_OUT:
            yield from _section(heading, cells, questions, answers)


def _section(heading: str, cells: list, questions: list, answers: dict) -> Iterator[Slide]:
    heading, text = _inline(heading), _first_paragraph(cells[0].source)
    slides: list[Slide] = []
    for cell in cells:
        if _is_folded(cell):
            continue
        new = [Slide(kind, heading, body) for kind, body in _results(cell.get("outputs", []))]
        if slides and new and slides[-1].kind == new[0].kind == "text":
            together = slides[-1].body + new[0].body
            if together.count("\n") < LINES:  # short texts of several cells, on one slide
                slides[-1:], new = [Slide("text", heading, together)], new[1:]
        slides += new
    if not questions and len(slides) == 1 and slides[0].kind != "picture":  # nothing to hold back
        text, slides = text + slides[0].body, []
    if text or questions:
        yield Slide("question", heading, text + _question_lines(questions))
    yield from slides
    if answers:
        yield Slide("answer", heading, _answer_table(answers))


def _results(outputs: list) -> Iterator[tuple[str, str]]:
    """(kind, HTML) of what one cell shows; its printed text is below its last table or code."""
    parts: list[tuple[str, str]] = []
    for output in outputs:
        if picture := _picture(output):
            parts.append(("picture", f'<div class="picture">{picture}</div>'))
        elif (table := _table(output)) and ">question<" not in table:
            parts += [("result", part) for part in _split_table(table)]
        elif code := output.get("data", {}).get("text/markdown"):
            parts += [("result", part) for part in _split_code(code)]
    if printed := _printed(outputs):
        below = parts.pop()[1] if parts and parts[-1][0] == "result" else ""
        parts.append(("result" if below else "text", f"{below}<pre>{html.escape(printed)}</pre>"))
    yield from parts


def _summary(heading: str, cells: list) -> Iterator[Slide]:
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    soup = BeautifulSoup(_markdown(text.split("\n", 1)[-1]), "html.parser")
    points = soup.find_all("li") or soup.find_all("p")
    for first in range(0, len(points), POINTS):
        body = "".join(
            f"<li>{point.decode_contents()}</li>" for point in points[first : first + POINTS]
        )
        yield Slide("summary", heading, f"<ul>{body}</ul>")


def _sections(cells: list) -> Iterator[tuple[str, list]]:
    """(heading, cells) of each second-level section; what is before the first is left out."""
    heading: str | None = None
    section: list = []
    for cell in (part for whole in cells for part in _at_headings(whole)):
        if cell.cell_type == "markdown" and cell.source.startswith("## "):
            if heading:
                yield heading, section
            heading, section = cell.source.splitlines()[0][3:].strip(), []
        section.append(cell)
    if heading:
        yield heading, section


def _at_headings(cell) -> list:
    """A cell of text that ends one section and begins another, as two."""
    if cell.cell_type != "markdown":
        return [cell]
    parts = re.split(r"^(?=## )", cell.source, flags=re.MULTILINE)
    return [nbformat.v4.new_markdown_cell(part) for part in parts if part.strip()]


def _is_folded(cell) -> bool:
    return cell.cell_type != "code" or FOLDED in cell.metadata.get("tags", [])


def _saved(code: list) -> dict:
    """The results that these cells saved; of equal names the last."""
    results: dict = {}
    for output in (output for cell in code for output in cell.outputs):
        results |= output.get("data", {}).get(MIME, {})
    return results


def _first_paragraph(source: str) -> str:
    """The text below a section's heading: a paragraph, and the list that it announces."""
    blocks = [block for block in re.split(r"\n\s*\n", source.strip()) if block.strip()]
    blocks[0] = "\n".join(blocks[0].splitlines()[1:])  # the heading
    blocks = [block for block in blocks if block.strip()]
    for at, block in enumerate(blocks):
        if not re.match(r"[>|#!-]|\d+\.", block):
            announced = blocks[at + 1 : at + 2] if block.rstrip().endswith(":") else []
            return "".join(map(_markdown, [block, *announced]))
    return ""


def _question_lines(questions: list) -> str:
    """questions: (text, choices) of each, in the order in which the lesson asks."""
    if not questions:
        return ""
    questions_with_choices = [" · ".join([f"{text}", *choices]) for text, choices in questions]
    lines = "".join(f"<p>{html.escape(line)}</p>" for line in questions_with_choices)
    return f'<div class="asked"><b>Your guess?</b>{lines}</div>'


def _answer_table(answers: dict[str, dict]) -> str:
    """Questions, the true answers, and where those are from: "measured", "computed"..."""
    rows = []
    for question, row in answers.items():
        (source,) = row.keys() - {"your guess", "off by"}
        cells = (html.escape(str(value)) for value in (question, row[source], source))
        rows.append("<tr><th>{}</th><td>{}</td><td>{}</td></tr>".format(*cells))
    head = "<thead><tr><th>You were asked</th><td>answer</td><td></td></tr></thead>"
    return f"<table>{head}{''.join(rows)}</table>"


def _picture(output) -> str:
    """The picture in an output, as HTML; "" if there is none."""
    page = output.get("data", {}).get("text/html", "")
    return page if re.search(r"<(img|svg)\b", page) and "<table" not in page else ""


def _table(output) -> str:
    page = output.get("data", {}).get("text/html", "")
    return page if "<table" in page else ""


def _split_table(page: str) -> list[str]:
    """A table in parts of ROWS rows with the same head; whole where cells span rows."""
    soup = BeautifulSoup(page, "html.parser")
    rows = soup.select("tbody > tr")
    if len(rows) <= ROWS or soup.select("tbody [rowspan]"):
        return [page]
    parts = []
    for first in range(0, len(rows), ROWS):
        part = BeautifulSoup(page, "html.parser")
        for at, row in enumerate(part.select("tbody > tr")):
            if not first <= at < first + ROWS:
                row.decompose()
        parts.append(str(part))
    return parts


def _split_code(text: str) -> list[str]:
    """What show_function or show_diff shows, in parts of CODE_LINES lines; other text as it is."""
    text = FOLDED_AWAY.sub("", text)
    if not (match := CODE.fullmatch(text)):
        return [_markdown(text)]
    source, lines = _markdown(match[1]), match[2].splitlines()
    starts = range(0, len(lines), CODE_LINES)
    parts = ["\n".join(lines[first : first + CODE_LINES]) for first in starts]
    return [f"{source}<pre>{html.escape(part)}</pre>" for part in parts]


def _printed(outputs: list) -> str:
    """What a cell printed, if it is a result: neither long nor a report of progress."""
    text = "".join(output.get("text", "") for output in outputs if output.get("name") == "stdout")
    text = WAIT.sub("", text)
    short = 0 < len(text.strip().splitlines()) <= LINES
    guess = text.startswith("What is your guess?")
    return "" if not short or guess or PROGRESS.search(text.strip()) else text.strip()


def _goals(head: str) -> str:
    """The list of what one can do after the lesson."""
    goals = re.search(r"\*\*After this lesson.*?\n\n((?:[-*] .*\n?(?:[ \t]+\S.*\n?)*)+)", head)
    return _markdown(goals[0]) if goals else ""


def _markdown(text: str) -> str:
    return markdown2html(LINK.sub(r"\1", text))


def _inline(text: str) -> str:
    return _markdown(text).removeprefix("<p>").strip().removesuffix("</p>")


if __name__ == "__main__":
    try:
        index, missing = build()
    except NoRun as error:
        sys.exit(f"error: {error}")
    if missing:
        print(f"Not in the last run, so without a deck: {', '.join(missing)}", file=sys.stderr)
    print(index)
