"""The tables of the instructor's guide: in step, adding up, and costs computed a second time."""

import re
import tomllib

import pytest
from course_text import lessons, table

from tools import tables
from workshop.account import prices
from workshop.account.prices import GRACE_SECONDS, PRICES, PriceNotKnown
from workshop.account.stacks import template_parameters
from workshop.jobs.lesson_jobs import PLANNED_SECONDS, lesson_jobs
from workshop.paths import ROOT, TEACHING

LESSONS = {lesson: path.read_text(encoding="utf-8") for lesson, path in lessons().items()}
MINUTES = {
    lesson: int(re.search(r"\*\*Time:\*\* (\d+) minutes", text)[1])
    for lesson, text in LESSONS.items()
}
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
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for page in (GUIDE, FIRST_RUN, readme):
        assert tables.filled(page) == page, "Run `python -m tools.sync`"
    for lessons_of, about, most in re.findall(
        r"<!-- jobs of ([\d ]+) -->about ([\d.]+) USD, at most ([\d.]+)<!-- end -->",
        FIRST_RUN + readme,
    ):
        jobs = [job for lesson in lessons_of.split() for job in JOBS[lesson]]
        assert float(about) == pytest.approx(usd(jobs, PLANNED_SECONDS), abs=0.0051), lessons_of
        assert is_rounded_up(most, usd(jobs)), lessons_of
    tried = re.findall(r"`workshop run ([\d ]+) --target aws`", FIRST_RUN)
    assert sorted(" ".join(tried).split()) == [lesson for lesson in LESSONS if JOBS[lesson]]
    assert set(re.findall(r"<!-- made: (\w+) -->", GUIDE)) >= {"timetables", "quotas", "costs"}
    with pytest.raises(tables.BadPlan, match="'lunch' made; known: timetables"):
        tables.filled("<!-- made: lunch -->\n<!-- end -->")


def test_the_readme_states_the_lessons_own_minutes():
    rows = re.findall(r"(?m)^\| \[(\d\d) [^|]*\| (\d+) \|", (ROOT / "README.md").read_text())
    assert {lesson: int(minutes) for lesson, minutes in rows} == MINUTES


def test_the_timetables_fit_their_hours_and_take_the_lessons_own_minutes(monkeypatch):
    planned = tables.planned()
    assert [timetable.name for timetable in planned] == ["Half a day", "A day", "Two days"]
    for timetable in planned:
        name, minutes, limit = timetable.name, timetable.minutes, timetable.hours * 60
        assert 0.75 * limit <= minutes <= limit, (name, minutes)
        assert all(sum(block.minutes for block in day) <= 8 * 60 for day in timetable.days), name
        blocks = dict(block for day in timetable.days for block in day)
        for lesson in timetable.lessons:
            title = tables.lesson(lesson).title
            core = [blocks[other] for other in blocks if other.startswith(f"{lesson}, its core: ")]
            assert core or blocks[title] == MINUTES[lesson], lesson
            assert all(0.75 * MINUTES[lesson] <= part < MINUTES[lesson] for part in core), lesson
    assert set(LESSONS) == set(planned[-1].lessons), "two days leave a lesson out"
    monkeypatch.setitem(tables.plan()["timetables"][0], "blocks", [{"lesson": "42"}])
    with pytest.raises(tables.BadPlan, match=r"42_\*\.py is not there"):
        tables.filled(GUIDE)


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
    assert rows("| timetable |")["Two days"][1:] == rows("| lesson | jobs")["**all**"][2:]


def test_a_class_is_summed_from_the_tables():
    costs = rows("| two days, every lesson |")
    parts = [float(cells[0]) for cells in list(costs.values())[:4]]
    assert float(costs["**together**"][0]) == pytest.approx(sum(parts), abs=0.025)
    jobs = [job for lesson in LESSONS for job in JOBS[lesson]]
    assert parts[0] == pytest.approx(usd(jobs, PLANNED_SECONDS), abs=0.0051)
    assert is_rounded_up(costs["the jobs at most instead of once"][0], usd(jobs))
    assert parts[2] == pytest.approx(16 * PRICE["idle"]["notebook ml.m5.xlarge"]["usd"], abs=0.0051)
    for seat, twenty in costs.values():
        assert float(twenty) == pytest.approx(20 * float(seat), abs=0.7)
    budget = template_parameters("budget")["BudgetUsd"]["Default"]
    assert float(costs["**together**"][0]) < budget, "it would not do for two days"


def test_a_price_that_is_not_there_is_not_guessed():
    with pytest.raises(PriceNotKnown, match=r"no row \[idle\] for 'endpoint ml.p4d'"):
        prices.idle_price("endpoint ml.p4d")
    assert prices.usd_per_month("endpoint ml.p4d") is None
    assert prices.usd_per_month("nat-gateway", 2) == pytest.approx(2 * 0.045 * 730)
    assert prices.usd_per_month("s3", 5 * prices.GB) == pytest.approx(5 * 0.023)
