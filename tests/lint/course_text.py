"""Read the course's texts with their line numbers: cells of lessons, rows of Markdown tables."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
NOTEBOOKS = ROOT / "notebooks"
GLOSSARY = NOTEBOOKS / "glossary.md"
REFERENCE = NOTEBOOKS / "reference.py"
SDK_V3 = ROOT / "notebooks" / "sdk_v3" / "sdk_v3.py"
COVERAGE = ROOT / "docs" / "teaching" / "coverage.md"
GUIDE = ROOT / "docs" / "teaching" / "guide.md"
TAGS = re.compile(r"tags=\[([^\]]*)\]")


class Finding(NamedTuple):
    """Something to correct, printed as path:line: message."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        path = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        return f"{path}:{self.line}: {self.message}"


@dataclass(frozen=True)
class Cell:
    """A cell of a py:percent source. line: of its first line of text."""

    kind: str
    tags: frozenset[str]
    line: int
    text: str


class Row(NamedTuple):
    """A row of a Markdown table."""

    line: int
    cells: list[str]


def lessons(folder: Path = NOTEBOOKS) -> dict[str, Path]:
    """The sources of the lessons by their numbers, as "05"."""
    return {path.name[:2]: path for path in sorted(folder.glob("[0-9][0-9]_*.py"))}


@cache
def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def cells(text: str) -> list[Cell]:
    """The cells of a py:percent source; Markdown comes without its comment signs."""
    parsed: list[Cell] = []
    head, start, lines = "", 0, text.splitlines()
    for number, line in enumerate([*lines, "# %%"], start=1):
        if line.startswith("# %%"):
            if head:
                parsed.append(_cell(head, start, lines[start - 1 : number - 1]))
            head, start = line, number + 1
    return parsed


def _cell(head: str, start: int, lines: list[str]) -> Cell:
    tags = frozenset(re.findall(r'"([^"]+)"', "".join(TAGS.findall(head))))
    if "[markdown]" not in head:
        return Cell("code", tags, start, "\n".join(lines))
    return Cell("markdown", tags, start, "\n".join(re.sub("^# ?", "", line) for line in lines))


def table(text: str, header: str) -> list[Row]:
    """The rows of the Markdown tables whose first line begins with `header`."""
    rows, inside = [], False
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith("|"):
            inside = False
        elif line.startswith(header):
            inside = True
        elif inside and set(line) - set("|-"):
            rows.append(Row(number, [cell.strip() for cell in line.strip("|").split("|")]))
    return rows


def matches(pattern: str | re.Pattern, text: str, first: int = 1) -> Iterator[tuple[int, re.Match]]:
    """(line, match) of each match in a text whose first line has the number `first`."""
    for match in re.finditer(pattern, text):
        yield first + text.count("\n", 0, match.start()), match


def blanked(pattern: re.Pattern, text: str) -> str:
    """The text with spaces in place of what matches; its lines stay where they are."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
