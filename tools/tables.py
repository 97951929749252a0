"""The instructor's pages. `python -m tools.sync` writes them.

README.md, guide.md and first_run_on_aws.md are written by hand, but for what is between two marks:

    <!-- made: timetables -->
    ...
    <!-- end -->

It is made from plan.toml, the lessons' own minutes and jobs, and the price table. In a line,
<!-- jobs of 05 06 --> has what the jobs of these lessons cost. quiz_answers.md is made whole, from
notebooks/quiz/
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tools import exercises
from workshop.account.prices import (
    GB,
    GRACE_SECONDS,
    HOURS_PER_MONTH,
    cost,
    idle_price,
    price_table,
    up_to_cents,
)
from workshop.account.stacks import template_parameters
from workshop.course.lessons import lessons, number
from workshop.jobs.lesson_jobs import PLANNED_SECONDS, lesson_jobs
from workshop.jobs.quotas import needed
from workshop.lesson import quiz
from workshop.paths import NOTEBOOKS, QUIZZES, ROOT, TEACHING

PLAN = Path(__file__).with_name("plan.toml")
TITLE = re.compile(r"^# # (\d\d · .*)$", re.MULTILINE)
TIME = re.compile(r"\*\*Time:\*\* (\d+) minutes")
PAGES = (ROOT / "README.md", TEACHING / "guide.md", TEACHING / "first_run_on_aws.md")
ANSWERS = TEACHING / "quiz_answers.md"
BEFORE_AND_AFTER = TEACHING / "before_and_after.md"
JOBS_OF = re.compile(r"(<!-- jobs of ([\d ]+) -->).*?(<!-- end -->)")
MADE = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
ANSWERS_TOP = """# Answers to the quizzes

Made from `notebooks/quiz/` by `python -m tools.sync`: change the questions there.
"""
BEFORE_AND_AFTER_TOP = """# Ten questions, before the course and after it

Name: ______________________  ☐ before ☐ after. One answer to each; leave out what you don't know.

<!-- Made from `notebooks/quiz/before_and_after.toml` by `python -m tools.sync`. -->
"""


class BadPlan(ValueError):
    """The guide or plan.toml does not fit the lessons; the message says where."""


class Block(NamedTuple):
    """One line of a timetable. minutes: how long it takes."""

    title: str
    minutes: int


@dataclass(frozen=True)
class Timetable:
    """A way to give the course: a list of blocks for each day. lessons: their numbers."""

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


def lesson(number: str) -> Block:
    """A lesson's title and its own minutes. Raises BadPlan."""
    text = _source(number, NOTEBOOKS).read_text(encoding="utf-8")
    title, time = TITLE.search(text), TIME.search(text)
    if not title or not time:
        raise BadPlan(f"Lesson {number} has no title or no **Time:** N minutes.")
    return Block(title[1], int(time[1]))


def exercises_of(number: str) -> Block:
    """The exercises of a lesson, and the sum of their minutes. Raises BadPlan, BadSource."""
    items = exercises.exercises(_source(number, exercises.SOLUTIONS))
    return Block(f"Exercises of {number} ({len(items)})", sum(item.minutes for item in items))


def _source(number: str, folder: Path) -> Path:
    for path in folder.glob(f"{number}_*.py"):
        return path
    raise BadPlan(f"{PLAN.name} names lesson {number}: {folder.name}/{number}_*.py is not there.")


def planned() -> list[Timetable]:
    """The plan's timetables, with the lessons' own minutes. Raises BadPlan."""
    result = []
    for table in plan()["timetables"]:
        days: list[list[Block]] = [[]]
        for entry in table["blocks"]:
            if "day" in entry:
                days.append([])
            else:
                days[-1].append(_block(entry))
        numbers = [entry["lesson"] for entry in table["blocks"] if "lesson" in entry]
        result.append(Timetable(table["name"], table["why"], table["hours"], days, numbers))
    return result


def _block(entry: dict[str, Any]) -> Block:
    if "core" in entry:
        return Block(f"{entry['lesson']}, its core: {entry['core']}", entry["minutes"])
    if "lesson" in entry:
        return lesson(entry["lesson"])
    if "exercises" in entry:
        return exercises_of(entry["exercises"])
    return Block(entry["what"], entry["minutes"])


def pages() -> dict[Path, str]:
    """Each page's place and the text it must have.

    Raises BadPlan for a mark or a plan that nothing can be made from.
    """
    made = {path: filled(path.read_text(encoding="utf-8")) for path in PAGES}
    return made | {ANSWERS: quiz_answers(), BEFORE_AND_AFTER: before_and_after()}


def filled(text: str) -> str:
    """A page's text with each made part made anew. Raises BadPlan for an unknown mark."""
    makers = {
        "timetables": timetables,
        "quotas": quotas,
        "costs": timetable_costs,
        "lesson_costs": lesson_costs,
        "class_costs": class_costs,
        "idle_costs": idle_costs,
    }

    def made(match: re.Match) -> str:
        if match[2] not in makers:
            raise BadPlan(f"A page wants {match[2]!r} made; known: {', '.join(makers)}.")
        return f"{match[1]}\n{makers[match[2]]()}\n\n{match[3]}"

    def jobs(match: re.Match) -> str:
        bill = seat(match[2].split())
        return f"{match[1]}about {bill.usd:.2f} USD, at most {bill.most:.2f}{match[3]}"

    return JOBS_OF.sub(jobs, MADE.sub(made, text))


def quiz_answers() -> str:
    """All lessons' questions with the right choice and why, as Markdown."""
    lines = [ANSWERS_TOP]
    quizzes = {lesson(name).title: quiz.load(name) for name in quiz.lessons()}
    quizzes["Before and after"] = quiz.read(QUIZZES / "before_and_after.toml")
    for title, questions in quizzes.items():
        key = "".join(quiz.LETTERS[question.answer] for question in questions)
        lines += [f"## {title}", "", f"In short: `{key}`.", ""]
        for at, question in enumerate(questions, 1):
            lines += [f"{at}. {question.text}", ""]
            shared = len(set(question.why)) == 1  # one answer to all choices
            for index, choice in enumerate(question.choices):
                text = f"{quiz.LETTERS[index]}) {choice}"
                right = index == question.answer
                text = f"**{text}** (right)" if right else text
                lines.append(f"   - {text}" + ("" if shared else f"\\\n     {question.why[index]}"))
            lines += ["", f"   {question.why[0]}", ""] if shared else [""]
    return "\n".join(lines)


def before_and_after() -> str:
    """The ten questions without their answers, to be printed, as Markdown."""
    lines = [BEFORE_AND_AFTER_TOP]
    for at, question in enumerate(quiz.read(QUIZZES / "before_and_after.toml"), 1):
        choices = zip(quiz.LETTERS, question.choices, strict=False)
        lines += [f"{at}. {question.text}", ""]
        lines += [*(f"   - {letter}) {choice}" for letter, choice in choices), ""]
    return "\n".join(lines)


def timetables() -> str:
    """Every timetable as a table: from, minutes, what."""
    parts = []
    for timetable in planned():
        hours, minutes = divmod(timetable.minutes, 60)
        parts.append(f"### {timetable.name}: {hours} h {minutes:02d} min\n\n{timetable.why}")
        for at, day in enumerate(timetable.days, 1):
            rows = [f"| {'day ' + str(at) if len(timetable.days) > 1 else 'from'} | min | what |"]
            clock = datetime.strptime(plan()["start"], "%H:%M")
            rows.append("|---|---|---|")
            for block in day:
                rows.append(f"| {clock:%H:%M} | {block.minutes} | {block.title} |")
                clock += timedelta(minutes=block.minutes)
            parts.append("\n".join([*rows, f"| {clock:%H:%M} | | end |"]))
    return "\n\n".join(parts)


def quotas() -> str:
    """What each quota must be, for a seat and for a room."""
    rows = ["| quota | one seat | 10 seats | 20 seats |", "|---|---|---|---|"]
    rows += [
        f"| `{name}` | {count} | {10 * count} | {20 * count} |" for name, count in needed(1).items()
    ]
    return "\n".join(rows)


@dataclass(frozen=True)
class Bill:
    """What lessons cost one seat that runs every cell once. usd: as planned; most: at most."""

    jobs: int = 0
    instances: int = 0
    usd: float = 0.0
    most: float = 0.0


def seat(numbers: list[str]) -> Bill:
    """The bill of one seat that runs these lessons."""
    jobs = [job for lesson in numbers for job in lesson_jobs(lesson)]
    costs = [
        cost(job.instance_type, job.instance_count, PLANNED_SECONDS, job.max_run) for job in jobs
    ]
    return Bill(
        len(jobs),
        sum(job.instance_count for job in jobs),
        sum(price.usd for price in costs),
        up_to_cents(sum(price.most_usd for price in costs)),
    )


def timetable_costs() -> str:
    """What a seat's jobs cost for each timetable."""
    rows = [
        f"| timetable | jobs | USD a seat, {PLANNED_SECONDS} s a job | USD a seat at most |",
        "|---|---|---|---|",
    ]
    for timetable in planned():
        bill = seat(timetable.lessons)
        rows.append(f"| {timetable.name} | {bill.jobs} | {bill.usd:.2f} | {bill.most:.2f} |")
    return "\n".join([*rows, "", _dated()])


def lesson_costs() -> str:
    """A row for each lesson that there is: jobs, instances, minutes, USD; and their sum."""
    rows = [
        "| lesson | jobs x instances | minutes a job: planned, at most | USD | USD at most |",
        "|---|---|---|---|---|",
    ]
    numbers = [number(path) for path in lessons()]
    for name in numbers:
        bill, jobs, minutes = seat([name]), "none: it runs beside the notebook", ""
        if declared := lesson_jobs(name):
            alike = Counter((job.instance_count, job.instance_type) for job in declared)
            jobs = ", ".join(f"{n} x {count} `{kind}`" for (count, kind), n in alike.items())
            most = max(job.max_run for job in declared) + GRACE_SECONDS
            minutes = f"{PLANNED_SECONDS / 60:g}, {most / 60:g}"
        rows.append(f"| {name} | {jobs} | {minutes} | {bill.usd:.2f} | {bill.most:.2f} |")
    whole = seat(numbers)
    count = f"{whole.jobs} jobs, {whole.instances} instances"
    rows.append(f"| **all** | {count} | | {whole.usd:.2f} | {whole.most:.2f} |")
    return "\n".join([*rows, "", _dated()])


def class_costs() -> str:
    """What a seat and 20 of them cost in two days on AWS, with a notebook instance each."""
    notebook = template_parameters("notebook")
    kind, disk = notebook["InstanceType"]["Default"], notebook["VolumeSizeInGB"]["Default"]
    jobs, serving = seat(planned()[-1].lessons), "ml.m5.large"
    hosted = idle_price(f"endpoint {serving}").usd / 2
    transforms = 2 * cost(serving, 1, PLANNED_SECONDS).usd
    week = idle_price("notebook-volume").per_month(disk * GB) * 7 / (365 / 12)
    rows = [
        ("the lessons' jobs, once", jobs.usd),
        (
            f"lesson 08's endpoint for half an hour, two transforms (`{serving}`)",
            hosted + transforms,
        ),
        (
            f"a notebook instance `{kind}`, two days of 8 hours",
            16 * idle_price(f"notebook {kind}").usd,
        ),
        (f"its disk of {disk} GB, a week until it is deleted", week),
    ]
    rows.append(("**together**", sum(usd for _, usd in rows)))
    rows.append(("the jobs at most instead of once", jobs.most))
    lines = ["| two days, every lesson | USD a seat | 20 seats |", "|---|---|---|"]
    return "\n".join(
        [*lines, *(f"| {title} | {usd:.2f} | {20 * usd:.0f} |" for title, usd in rows)]
    )


def _dated() -> str:
    used = {job.instance_type for path in lessons() for job in lesson_jobs(number(path))}
    costs = [cost(kind, 1, 0) for kind in sorted(used)]
    dates = sorted({str(price.price_date) for price in costs})
    sources = " ".join(sorted({f"<{price.source}>" for price in costs}))
    prices = ", ".join(
        f"`{price.instance_type}` {price.usd_per_hour:g} USD an hour" for price in costs
    )
    return (
        f"Prices: {prices}; {price_table()['region']}, price list of {' to '.join(dates)}, "
        f"{sources}. How they were read: `workshop/account/prices.toml`."
    )


def idle_costs() -> str:
    """What costs by the hour or by the GB while it is there: an hour, a day, a month."""
    rows = [
        "| while there is | USD | a day | a month | price as of | source |",
        "|---|---|---|---|---|---|",
    ]
    for name in price_table()["idle"]:
        price = idle_price(name)
        title = price.description if price.per == "hour" else f"{price.description}, 10 GB"
        monthly = price.per_month(price.example)
        daily = monthly / HOURS_PER_MONTH * 24
        rows.append(
            f"| {title} | {price.usd:g} per {price.per} | {daily:.2f} | {monthly:.2f} | "
            f"{price.price_date} | <{price.source}> |"
        )
    return "\n".join(rows)
