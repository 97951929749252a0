"""The instructor's pages lead where they say."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator

from course_text import (
    COVERAGE,
    GUIDE,
    REFERENCE,
    ROOT,
    Cell,
    Finding,
    cells,
    lessons,
    matches,
    read,
    table,
)

# The source documents' own numbers; some were never given.
CLAIMS = set(range(1, 101)) - {21, 22, 30, 61, 80, 81, 85}


def wrong_place(lesson: str, section: str, shown: str) -> str | None:
    """What is wrong with a place where a claim is said to be shown; None if nothing is.

    shown: "result `NAME`", "code `TEXT`", "test `FILE::NAME`" or "source `ADDRESS`". That an
    executed lesson has the result is tests/notebooks/lessons/test_coverage.py's.
    """
    sources = lessons() | {"reference": REFERENCE}
    if lesson not in sources:
        return f"there is no lesson {lesson}"
    if section not in (found := cells_by_section(read(sources[lesson]))):
        return f"lesson {lesson} has no section {section!r}; it has: {', '.join(found)}"
    kind, _, text = shown.partition(" ")
    text = text.removeprefix("`").removesuffix("`")
    if kind == "result" and text:
        saved = [name for cell in found[section] for name in saved_results(cell)]
        if text not in saved:
            return f"no cell of {section!r} in lesson {lesson} records {text!r}, only {saved}"
        return None
    if kind == "code" and text:
        if text not in " ".join(" ".join(map(code_of, found[section])).split()):
            return f"no code cell of section {section!r} in lesson {lesson} has {text!r}"
        return None
    if kind == "test" and "::" in text:
        file, name = text.split("::")
        path = ROOT / file
        if not path.is_file() or f"def {name.split('[')[0]}(" not in read(path):
            return f"there is no test {text}"
        return None
    if kind == "source" and text:
        if not any(f"]({text})" in " ".join(cell.text.split()) for cell in found[section]):
            return f"section {section!r} of lesson {lesson} has no link to {text}"
        return None
    return f"{shown!r} is none of result `NAME`, code `TEXT`, test `FILE::NAME`, source `ADDRESS`"


def cells_by_section(text: str) -> dict[str, list[Cell]]:
    """Second-level heading -> its cells; one in which several begin belongs to each of them."""
    found: dict[str, list[Cell]] = {}
    heading = None
    for cell in cells(text):
        begun = re.findall(r"^## (.*)$", cell.text, re.MULTILINE) if cell.kind != "code" else []
        parts = re.split(r"^## .*$", cell.text, flags=re.MULTILINE) if begun else [cell.text]
        for name, part in zip([heading, *begun], parts, strict=True):
            if name is not None:
                found.setdefault(name, []).append(dataclasses.replace(cell, text=part))
        heading = begun[-1] if begun else heading
    return found


def saved_results(cell: Cell) -> list[str]:
    """The names that a cell gives to workshop.save_results."""
    if cell.kind != "code":
        return []
    calls = [node for node in ast.walk(ast.parse(cell.text)) if isinstance(node, ast.Call)]
    saving = [one for one in calls if getattr(one.func, "attr", "") == "save_results"]
    return [keyword.arg for one in saving for keyword in one.keywords if keyword.arg]


def code_of(cell: Cell) -> str:
    """A code cell's text with that of the scripts it names; nothing of prose, however marked."""
    if cell.kind != "code":
        return ""
    paths = [
        ROOT / "scripts" / folder / name
        for name in re.findall(r'"([\w/]+\.py)"', cell.text)
        for folder in ("", "train", "demos")
    ]
    return "\n".join([cell.text, *(read(path) for path in paths if path.is_file())])


def of_coverage(coverage: str) -> Iterator[Finding]:
    """Each claim of the source documents once, with a section and what in it shows the claim."""
    rows = table(coverage, "| row |")
    numbers = [int(row.cells[0]) for row in rows]
    for number in sorted(CLAIMS ^ set(numbers)):
        yield Finding(COVERAGE, 1, f"row {number} is missing, or was never given")
    for number in sorted({one for one in numbers if numbers.count(one) > 1}):
        yield Finding(COVERAGE, 1, f"row {number} is there twice")
    for line, row in rows:
        if row[1] not in ("✗", "") or not row[2]:
            yield Finding(COVERAGE, line, f"row {row[0]}: a mark other than ✗, or no claim")
    for line, row in [*rows, *table(coverage, "| also |")]:
        if reason := wrong_place(*row[-3:]):
            yield Finding(COVERAGE, line, f"{row[0]}: {reason}")


def of_misunderstandings(guide: str, coverage: str) -> Iterator[Finding]:
    """Each wrong claim has its correction, its place in a lesson, and a question for the room."""
    claims = {int(row.cells[0]): row.cells for row in table(coverage, "| row |")}
    told: list[int] = []
    for line, (numbers, belief, right, where, question) in table(guide, "| rows |"):
        those = [claims.get(int(number)) for number in numbers.split(",")]
        told += [int(number) for number in numbers.split(",")]
        places = [" · ".join(claim[3:5]) for claim in those if claim]
        if where not in places:
            yield Finding(GUIDE, line, f"{where!r} is not where coverage.md has it: {places}")
        if not (belief and right and question.endswith("?")):
            yield Finding(GUIDE, line, "a belief, its correction or a question is missing")
    wrong = [number for number, claim in claims.items() if claim[1] == "✗"]
    for number in sorted(set(wrong) ^ set(told)):
        yield Finding(GUIDE, 1, f"wrong claims (✗) here and in coverage.md differ: row {number}")


def of_commands(guide: str, makefile: str, commands: str) -> Iterator[Finding]:
    """The commands that the guide names exist. commands: what `workshop --help` prints."""
    for line, match in matches(r"\bmake ([a-z-]+)", guide):
        if not re.search(rf"^{match[1]}:", makefile, re.MULTILINE):
            yield Finding(GUIDE, line, f"there is no `make {match[1]}`")
    for line, match in matches(r"\bworkshop ([a-z]+)", guide):
        if not re.search(rf"^  {match[1]}\b", commands, re.MULTILINE):
            yield Finding(GUIDE, line, f"there is no `workshop {match[1]}`")


def findings() -> Iterator[Finding]:
    from click.testing import CliRunner

    from workshop.cli import main

    guide, coverage = read(GUIDE), read(COVERAGE)
    yield from of_coverage(coverage)
    yield from of_misunderstandings(guide, coverage)
    commands = CliRunner().invoke(main, ["--help"]).output
    yield from of_commands(guide, read(ROOT / "Makefile"), commands)
