"""The instructor's pages lead where they say."""

from __future__ import annotations

import re
from collections.abc import Iterator

from course_text import COVERAGE, GUIDE, ROOT, Finding, lessons, matches, read, sections, table

# The source documents' own numbers; some were never given.
CLAIMS = set(range(1, 101)) - {21, 22, 30, 61, 80, 81, 85}


def wrong_place(lesson: str, section: str, says: str) -> str | None:
    """What is wrong with a place where a claim is said to be taught; None if nothing is."""
    if lesson not in lessons():
        return f"there is no lesson {lesson}"
    if section not in (found := sections(read(lessons()[lesson]))):
        return f"lesson {lesson} has no section {section!r}; it has: {', '.join(found)}"
    if not says:
        return "no word to look for"
    if says.strip("`").casefold() not in " ".join(found[section].split()).casefold():
        return f"section {section!r} of lesson {lesson} never says {says!r}"
    return None


def of_coverage(coverage: str) -> Iterator[Finding]:
    """Each claim of the source documents once, with a section that says it."""
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
