"""How long lessons, sections and exercises take, and which jobs a seat starts."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jupytext

from workshop.jobs.session import MAX_RUN_SECONDS
from workshop.paths import NOTEBOOKS

PLAN = Path(__file__).with_name("plan.toml")
TIME = re.compile(r"\*\*Time:\*\* (\d+) minutes")
EXERCISE = re.compile(r"^# ## Exercise \d\d\.\d+ · .*\((\d+) minutes", re.MULTILINE)
# A learner's minutes, relative to each other: reading, and running and looking at a cell.
WORDS_PER_MINUTE, MINUTES_PER_CODE_CELL = 120, 0.6


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


def source(number: str, folder: Path = NOTEBOOKS) -> Path | None:
    """The py:percent source of a lesson (or of its solutions, in their folder)."""
    return next(iter(sorted(folder.glob(f"{number}_*.py"))), None)


def lesson(number: str) -> Block:
    """A lesson's title and minutes: its own, or the plan's while it is to come."""
    if path := source(number):
        text = path.read_text(encoding="utf-8")
        title = re.search(rf"^# # ({number} · .*)$", text, re.MULTILINE)
        time = TIME.search(text)
        if not title or not time:
            raise BadPlan(f"{path.name} has no title or no **Time:** N minutes.")
        return Block(title[1], int(time[1]))
    if number not in plan()["to_come"]:
        raise BadPlan(f"There is no lesson {number}, and {PLAN.name} has none to come.")
    found = plan()["to_come"][number]
    return Block(f"{number} · {found['title']} (to come)", found["minutes"])


def exercises(number: str) -> Block:
    """The exercises of a lesson, and the sum of their minutes."""
    path = source(number, NOTEBOOKS / "solutions")
    minutes = [int(one) for one in EXERCISE.findall(path.read_text("utf-8"))] if path else []
    if not minutes:
        raise BadPlan(f"The exercises of lesson {number} are not there, or name no minutes.")
    return Block(f"Exercises of {number} ({len(minutes)})", sum(minutes))


def max_run(number: str) -> int:
    """Seconds after which SageMaker ends a lesson's jobs: its parameter, or every job's limit."""
    path = source(number)
    found = re.search(r"^max_run = (\d+)", path.read_text("utf-8"), re.MULTILINE) if path else None
    return int(found[1]) if found else MAX_RUN_SECONDS


def timetables() -> list[Timetable]:
    """The plan's timetables, with the lessons' own minutes. Raises BadPlan."""
    found = []
    for one in plan()["timetables"]:
        days: list[list[Block]] = [[]]
        for entry in one["blocks"]:
            if "day" in entry:
                days.append([])
            else:
                days[-1].append(_block(entry))
        numbers = [entry["lesson"] for entry in one["blocks"] if "lesson" in entry]
        found.append(Timetable(one["name"], one["why"], one["hours"], days, numbers))
    return found


def _block(entry: dict[str, Any]) -> Block:
    if "lesson" in entry:
        return lesson(entry["lesson"])
    if "exercises" in entry:
        return exercises(entry["exercises"])
    return Block(entry["what"], entry["minutes"])


def sections(number: str) -> dict[str, int]:
    """Minutes of each second-level section of a lesson; their sum is the lesson's time.

    The lesson's own minutes are shared out by the words to read and the cells to run, in whole
    minutes, so that a short section may have 0.
    """
    path = source(number)
    if path is None:
        raise BadPlan(f"There is no lesson {number} yet.")
    weights: dict[str, float] = {}
    heading = ""
    for cell in jupytext.read(path).cells:
        if cell.cell_type == "code" and heading:
            weights[heading] += MINUTES_PER_CODE_CELL
        elif cell.cell_type == "markdown":
            for part in re.split(r"(?m)^(?=## )", cell.source):
                if part.startswith("## "):
                    heading = part.splitlines()[0].removeprefix("## ")
                    weights[heading] = 0.0
                if heading:
                    weights[heading] += len(part.split()) / WORDS_PER_MINUTE
    return _shared_out(weights, lesson(number).minutes)


def _shared_out(weights: dict[str, float], total: int) -> dict[str, int]:
    """Whole numbers that add up to `total`, as near to the weights as can be."""
    scale = total / sum(weights.values())
    exact = {name: weight * scale for name, weight in weights.items()}
    found = {name: int(share) for name, share in exact.items()}
    largest = sorted(exact, key=lambda name: exact[name] - found[name], reverse=True)
    for name in largest[: total - sum(found.values())]:
        found[name] += 1
    return found
