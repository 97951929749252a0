"""The instructor's pages. `python -m tools.sync` writes them.

guide.md and first_run_on_aws.md are written by hand, but for what is between two marks:

    <!-- made: lesson_costs -->
    ...
    <!-- end -->

It is made from the lessons' jobs and the price table. In a line,
<!-- jobs of 05 06 --> has what the jobs of these lessons cost. quiz_answers.md is made whole, from
notebooks/quiz/
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from workshop.account.preflight.asking import ALL_INSTANCES
from workshop.account.prices import GRACE_SECONDS, cost, idle_table, price_table, up_to_cents
from workshop.course.lessons import lessons, number
from workshop.jobs.lesson_jobs import PLANNED_SECONDS, lesson_jobs, lesson_parameters
from workshop.lesson import quiz
from workshop.paths import QUIZZES, TEACHING

TITLE = re.compile(r"^# # (\d\d · .*)$", re.MULTILINE)
PAGES = (TEACHING / "guide.md", TEACHING / "first_run_on_aws.md")
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


def pages() -> dict[Path, str]:
    """Each page's place and the text it must have."""
    made = {path: filled(path.read_text(encoding="utf-8")) for path in PAGES}
    return made | {ANSWERS: quiz_answers(), BEFORE_AND_AFTER: before_and_after()}


def filled(text: str) -> str:
    """A page's text with each made part made anew."""
    makers = {"quotas": quotas, "lesson_costs": lesson_costs, "idle_costs": idle_costs}

    def made(match: re.Match) -> str:
        return f"{match[1]}\n{makers[match[2]]()}\n\n{match[3]}"

    def jobs(match: re.Match) -> str:
        bill = seat(match[2].split())
        return f"{match[1]}about {bill.usd:.2f} USD, at most {bill.most:.2f}{match[3]}"

    return JOBS_OF.sub(jobs, MADE.sub(made, text))


def quiz_answers() -> str:
    """All lessons' questions with the right choice and why, as Markdown."""
    lines = [ANSWERS_TOP]
    quizzes = {}
    for path in lessons():
        (title,) = TITLE.findall(path.with_suffix(".py").read_text(encoding="utf-8"))
        quizzes[title] = quiz.load(number(path))
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


def quotas() -> str:
    """What each quota must be, for a seat and for a room whose seats run the same cell at once.

    A lesson runs its jobs one after the other.
    """
    each: dict[str, int] = {}
    for name in map(number, lessons()):
        for job in lesson_jobs(name):
            usages = ["training job usage"] + ["spot training job usage"] * bool(job.spot)
            for quota in (ALL_INSTANCES, *(f"{job.instance_type} for {usage}" for usage in usages)):
                each[quota] = max(each.get(quota, 0), job.instance_count)
        if kind := lesson_parameters(name).get("serving_type"):
            each |= {f"{kind} for endpoint usage": 1, f"{kind} for transform job usage": 1}
    rows = ["| quota | one seat | 10 seats | 20 seats |", "|---|---|---|---|"]
    rows += [
        f"| `{name}` | {count} | {10 * count} | {20 * count} |" for name, count in each.items()
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
    """What costs by the hour or by the GB while it is there."""
    rows = ["| while there is | USD | USD a month | price as of |", "|---|---|---|---|"]
    for thing, usd, monthly, date in idle_table().itertuples(index=False):
        rows.append(f"| {thing} | {usd} | {monthly:.2f} | {date} |")
    return "\n".join(rows)
