"""The instructor's pages lead where they say."""

import ast
import dataclasses
import re
from collections.abc import Iterator

from course_text import COVERAGE, GUIDE, REFERENCE, ROOT, Cell, Finding, cells, lessons, read, table

# The source documents' own numbers; some were never given.
CLAIMS = set(range(1, 101)) - {21, 22, 30, 61, 80, 81, 85}


def wrong_place(lesson: str, section: str, evidence: str) -> str | None:
    """What is wrong with a place where a claim is said to be shown; None if nothing is.

    evidence: "result `NAME`", "code `TEXT`", "test `FILE::NAME`" or "source `ADDRESS`". That an
    executed lesson has the result is tests/notebooks/lessons/test_coverage.py's.
    """
    sources = lessons() | {"reference": REFERENCE}
    if lesson not in sources:
        return f"there is no lesson {lesson}"
    if section not in (sections := cells_by_section(read(sources[lesson]))):
        return f"lesson {lesson} has no section {section!r}; it has: {', '.join(sections)}"
    kind, _, quoted = evidence.partition(" ")
    text, file = quoted.strip("`"), quoted.strip("`").partition("::")[0]
    here = sections[section]
    if kind == "result" and text:
        shown = text in [name for cell in here for name in saved_results(cell)]
    elif kind == "code" and text:
        shown = text in " ".join(" ".join(map(code_of, here)).split())
    elif kind == "source" and text:
        shown = any(f"]({text})" in " ".join(cell.text.split()) for cell in here)
    elif kind == "test" and "::" in text:
        name = text.partition("::")[2].partition("[")[0]
        shown = (ROOT / file).is_file() and f"def {name}(" in read(ROOT / file)
    else:
        kinds = "result `NAME`, code `TEXT`, test `FILE::NAME`, source `ADDRESS`"
        return f"{evidence!r} is none of {kinds}"
    place = "in the tests" if kind == "test" else f"in section {section!r} of lesson {lesson}"
    return None if shown else f"there is no {kind} {text!r} {place}"


def cells_by_section(text: str) -> dict[str, list[Cell]]:
    """Second-level heading -> its cells; one in which several begin belongs to each of them."""
    sections: dict[str, list[Cell]] = {}
    heading = None
    for cell in cells(text):
        begun = re.findall(r"^## (.*)$", cell.text, re.MULTILINE) if cell.kind != "code" else []
        parts = re.split(r"^## .*$", cell.text, flags=re.MULTILINE) if begun else [cell.text]
        for name, part in zip([heading, *begun], parts, strict=True):
            if name is not None:
                sections.setdefault(name, []).append(dataclasses.replace(cell, text=part))
        heading = begun[-1] if begun else heading
    return sections


def saved_results(cell: Cell) -> list[str]:
    """The names that a cell gives to workshop.save_results."""
    nodes = ast.walk(ast.parse(cell.text)) if cell.kind == "code" else ()
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    saving = [call for call in calls if getattr(call.func, "attr", "") == "save_results"]
    return [keyword.arg for call in saving for keyword in call.keywords if keyword.arg]


def code_of(cell: Cell) -> str:
    """A code cell's text with that of the scripts it names; nothing of prose, however marked."""
    if cell.kind != "code":
        return ""
    names = re.findall(r'"([\w/]+\.py)"', cell.text)
    folders = [ROOT / "scripts" / folder for folder in ("", "train", "demos")]
    paths = [folder / name for name in names for folder in folders]
    return "\n".join([cell.text, *(read(path) for path in paths if path.is_file())])


def check_coverage(coverage: str) -> Iterator[Finding]:
    """Each claim of the source documents once, with a section and what in it shows the claim."""
    rows = table(coverage, "| row |")
    numbers = [int(row.cells[0]) for row in rows]
    for number in sorted(CLAIMS ^ set(numbers)):
        yield Finding(COVERAGE, 1, f"row {number} is missing, or was never given")
    for number in sorted({number for number in numbers if numbers.count(number) > 1}):
        yield Finding(COVERAGE, 1, f"row {number} is there twice")
    for line, row in [*rows, *table(coverage, "| also |")]:
        if reason := wrong_place(*row[-3:]):
            yield Finding(COVERAGE, line, f"{row[0]}: {reason}")


def check_misunderstandings(guide: str, coverage: str) -> Iterator[Finding]:
    """Each wrong claim (✗) stands in the guide, at the place that coverage.md gives it."""
    claims = {int(row.cells[0]): row.cells for row in table(coverage, "| row |")}
    corrected: set[int] = set()
    for line, (numbers, *_, where, question) in table(guide, "| rows |"):
        rows = [int(number) for number in numbers.split(",")]
        corrected.update(rows)
        places = [" · ".join(claims[row][3:5]) for row in rows if row in claims]
        if where not in places or not question.endswith("?"):
            yield Finding(GUIDE, line, f"no question, or {where!r} is none of {places}")
    wrong = {number for number, claim in claims.items() if claim[1] == "✗"}
    for number in sorted(wrong ^ corrected):
        yield Finding(GUIDE, 1, f"wrong claims (✗) here and in coverage.md differ: row {number}")


def findings() -> Iterator[Finding]:
    yield from check_coverage(read(COVERAGE))
    yield from check_misunderstandings(read(GUIDE), read(COVERAGE))
