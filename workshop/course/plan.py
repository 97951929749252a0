"""plan.toml with the lessons' own minutes: timetables and sections."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from workshop.paths import NOTEBOOKS

PLAN = Path(__file__).with_name("plan.toml")
TITLE = re.compile(r"^# # (\d\d · .*)$", re.MULTILINE)
TIME = re.compile(r"\*\*Time:\*\* (\d+) minutes")
SECTION = re.compile(r"^# ## (.*)$", re.MULTILINE)
EXERCISE = re.compile(r"^# ## Exercise \d\d\.\d+ · .*\((\d+) minutes", re.MULTILINE)


class BadPlan(ValueError):
    """plan.toml does not fit the lessons; the message says where."""


@dataclass(frozen=True)
class Block:
    """One line of a timetable. minutes: how long it takes."""

    what: str
    minutes: int


@dataclass(frozen=True)
class Timetable:
    """A way to give the course: a list of blocks for each day."""

    name: str
    why: str
    hours: int
    days: list[list[Block]]
    lessons: list[str]

    @property
    def minutes(self) -> int:
        """Minutes of all days together, breaks included."""
        return sum(block.minutes for day in self.days for block in day)


@cache
def plan() -> dict[str, Any]:
    """plan.toml as it is."""
    return tomllib.loads(PLAN.read_text(encoding="utf-8"))


def source(number: str, folder: Path = NOTEBOOKS) -> str:
    """The py:percent source of a lesson, or of its solutions in their folder. Raises BadPlan."""
    for path in folder.glob(f"{number}_*.py"):
        return path.read_text(encoding="utf-8")
    raise BadPlan(f"{PLAN.name} names lesson {number}: {folder.name}/{number}_*.py is not there.")


def lesson(number: str) -> Block:
    """A lesson's title and its own minutes. Raises BadPlan."""
    text = source(number)
    title, time = TITLE.search(text), TIME.search(text)
    if not title or not time:
        raise BadPlan(f"Lesson {number} has no title or no **Time:** N minutes.")
    return Block(title[1], int(time[1]))


def exercises(number: str) -> Block:
    """The exercises of a lesson, and the sum of their minutes. Raises BadPlan."""
    minutes = [int(one) for one in EXERCISE.findall(source(number, NOTEBOOKS / "solutions"))]
    if not minutes:
        raise BadPlan(f"The exercises of lesson {number} name no minutes.")
    return Block(f"Exercises of {number} ({len(minutes)})", sum(minutes))


def sections(number: str) -> dict[str, int]:
    """Minutes of each second-level section of a lesson. Raises BadPlan if they do not fit it."""
    planned = plan()["sections"].get(number, {})
    headings, minutes = SECTION.findall(source(number)), lesson(number).minutes
    if list(planned) != headings:
        wrong = ", ".join(sorted(set(planned) ^ set(headings))) or "in another order"
        raise BadPlan(f"{PLAN.name} [sections.{number}] and the lesson's sections differ: {wrong}.")
    if sum(planned.values()) != minutes:
        raise BadPlan(f"{PLAN.name} [sections.{number}]: minutes must add up to {minutes}.")
    return planned


def timetables() -> list[Timetable]:
    """The plan's timetables, with the lessons' own minutes. Raises BadPlan."""
    found = []
    for table in plan()["timetables"]:
        days: list[list[Block]] = [[]]
        for entry in table["blocks"]:
            if "day" in entry:
                days.append([])
            else:
                days[-1].append(_block(entry))
        numbers = [entry["lesson"] for entry in table["blocks"] if "lesson" in entry]
        found.append(Timetable(table["name"], table["why"], table["hours"], days, numbers))
    return found


def _block(entry: dict[str, Any]) -> Block:
    if "lesson" in entry:
        return lesson(entry["lesson"])
    if "exercises" in entry:
        return exercises(entry["exercises"])
    return Block(entry["what"], entry["minutes"])
