"""The tables of the instructor's guide: in step, adding up, and costs computed a second time."""

from __future__ import annotations

import itertools
import re
import tomllib

import pytest
from course_text import lessons, table

from tools import tables
from workshop.account import prices
from workshop.account.prices import GRACE_SECONDS, PRICES, PriceNotKnown
from workshop.jobs.lesson_jobs import PLANNED_SECONDS, lesson_jobs
from workshop.paths import TEACHING

LESSONS = {lesson: path.read_text(encoding="utf-8") for lesson, path in lessons().items()}
GUIDE = (TEACHING / "guide.md").read_text(encoding="utf-8")
FIRST_RUN = (TEACHING / "first_run_on_aws.md").read_text(encoding="utf-8")
PRICE = tomllib.loads(PRICES.read_text(encoding="utf-8"))
JOBS = {lesson: lesson_jobs(lesson) for lesson in LESSONS}


def rows(header: str) -> dict[str, list[str]]:
    """A table of the guide: first cell -> the others."""
    return {row.cells[0]: row.cells[1:] for row in table(GUIDE, header)}


def usd(jobs, seconds: float | None = None) -> float:
    """What the instances of these jobs cost: at most, or for so many seconds each."""
    return sum(
        PRICE["instances"][job.instance_type]["usd_per_hour"]
        * job.instance_count
        * (job.max_run + GRACE_SECONDS if seconds is None else seconds)
        / 3600
        for job in jobs
    )


def is_rounded_up(shown: str, exact: float) -> bool:
    """A limit in cents must not be below what may have to be paid."""
    return -1e-9 < float(shown) - exact < 0.01


def test_what_is_made_is_in_step():
    for page in (GUIDE, FIRST_RUN):
        assert tables.filled(page) == page, "Run `python -m tools.sync`"
    for lessons_of, about, most in re.findall(
        r"<!-- jobs of ([\d ]+) -->about ([\d.]+) USD, at most ([\d.]+)<!-- end -->", FIRST_RUN
    ):
        jobs = [job for lesson in lessons_of.split() for job in JOBS[lesson]]
        assert float(about) == pytest.approx(usd(jobs, PLANNED_SECONDS), abs=0.0051), lessons_of
        assert is_rounded_up(most, usd(jobs)), lessons_of
    tried = re.findall(r"`workshop run ([\d ]+) --target aws`", FIRST_RUN)
    assert sorted(" ".join(tried).split()) == [lesson for lesson in LESSONS if JOBS[lesson]]
    made = set(re.findall(r"<!-- made: (\w+) -->", GUIDE))
    assert made == {"quotas", "lesson_costs", "idle_costs"}
    quotas = rows("| quota |")
    assert quotas["`Number of instances across all training jobs`"] == ["5", "50", "100"]
    assert quotas["`ml.m5.large for endpoint usage`"] == ["1", "10", "20"]


BLOCK = re.compile(r"^\| (\d\d):(\d\d) \| (\d*) ?\| (.+) \|$", re.MULTILINE)


@pytest.mark.parametrize(("name", "limit"), [("Half a day", 4), ("A day", 8), ("Two days", 16)])
def test_a_timetable_adds_up_and_takes_the_lessons_own_minutes(name, limit):
    hours, minutes, text = re.search(
        rf"^### {name}: (\d+) h (\d\d) min$(.+?)^##", GUIDE, re.MULTILINE | re.DOTALL
    ).groups()
    blocks = []
    for hour, minute, length, title in BLOCK.findall(text):
        blocks.append((60 * int(hour) + int(minute), int(length or 0), title))
    for (begins, length, title), (after, *_) in itertools.pairwise(blocks):
        assert title == "end" or begins + length == after, title
    total = sum(length for _, length, _ in blocks)
    assert total == int(hours) * 60 + int(minutes) and 0.75 * limit <= total / 60 <= limit
    whole = {title[:2]: (length, title) for _, length, title in blocks if title[2:5] == " · "}
    for lesson, planned in whole.items():
        (own_title,) = re.findall(r"^# # (\d\d · .*)$", LESSONS[lesson], re.MULTILINE)
        stated = int(re.search(r"\*\*Time:\*\* (\d+) minutes", LESSONS[lesson])[1])
        assert planned == (stated, own_title)
    assert name != "Two days" or set(LESSONS) == set(whole), "two days leave a lesson out"


def test_a_lessons_row_and_its_own_header_say_what_its_jobs_cost():
    for lesson, (jobs, minutes, planned, most) in rows("| lesson | jobs").items():
        of = JOBS.get(lesson, [job for name in LESSONS for job in JOBS[name]])  # **all**
        assert float(planned) == pytest.approx(usd(of, PLANNED_SECONDS), abs=0.0051), lesson
        assert is_rounded_up(most, usd(of)), lesson
        if lesson == "**all**":
            instances = sum(job.instance_count for job in of)
            assert jobs == f"{len(of)} jobs, {instances} instances"
            continue
        shown = re.findall(r"(\d+) x (\d+) `(\S+)`", jobs)
        kinds = [(job.instance_count, job.instance_type) for job in of]
        assert {(int(n), int(count), kind) for n, count, kind in shown} == {
            (kinds.count(kind), *kind) for kind in kinds
        }
        stated = LESSONS[lesson].split("# %%")[1].split("**Cost on AWS:**")[1]
        for job in of:
            assert minutes == f"{PLANNED_SECONDS / 60:g}, {(job.max_run + GRACE_SECONDS) / 60:g}"
            assert f"`{job.instance_type}`" in stated
        amounts = re.findall(r"about ([\d.]+) USD", stated)
        assert all(amount == planned for amount in amounts), (lesson, planned, amounts)
        bounds = [float(text) for text in re.findall(r"[Aa]t most ([\d.]+) USD", stated)]
        assert all(bound == float(most) for bound in bounds), lesson
    assert list(rows("| lesson | jobs")) == [*LESSONS, "**all**"]


def test_the_declared_jobs_are_those_that_a_lesson_starts():
    for lesson, text in LESSONS.items():
        code = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
        starts = bool(re.search(r"\.fit\(|run_jobs\(|\.estimator\(", code))
        assert bool(JOBS[lesson]) == starts, f"{lesson}: its jobs and lesson_jobs.py differ"
        assert {job.instance_type for job in JOBS[lesson]} <= set(
            re.findall(r"\bml\.\w+\.\w+\b", code)
        )


def test_a_price_that_is_not_there_is_not_guessed():
    with pytest.raises(PriceNotKnown, match=r"no row \[idle\] for 'endpoint ml.p4d'"):
        prices.idle_price("endpoint ml.p4d")
    assert prices.usd_per_month("endpoint ml.p4d") is None
    assert prices.usd_per_month("nat-gateway", 2) == pytest.approx(2 * 0.045 * 730)
    assert prices.usd_per_month("s3", 5 * prices.GB) == pytest.approx(5 * 0.023)
