"""The instructor's guide: its tables add up and are in step; tests/lint reads its prose."""

import re
from datetime import datetime
from itertools import pairwise

import pytest
from course_text import lessons, read, sections, table

from workshop.account.prices import cost
from workshop.course import plan, tables
from workshop.jobs.lesson_jobs import PLANNED_SECONDS, lesson_jobs
from workshop.paths import NOTEBOOKS

LESSONS = lessons()
GUIDE = (NOTEBOOKS / "instructor" / "guide.md").read_text(encoding="utf-8")
TIMETABLES = plan.timetables()
JOBS = {lesson: lesson_jobs(lesson) for lesson in LESSONS}


def own_minutes(lesson: str) -> int:
    """What a lesson says of itself."""
    text = LESSONS[lesson].read_text(encoding="utf-8")
    return int(re.search(r"\*\*Time:\*\* (\d+) minutes", text)[1])


def instance_types(lesson: str) -> set[str]:
    return set(re.findall(r"\bml\.\w+\.\w+\b", "\n".join(code(lesson))))


def code(lesson: str) -> list[str]:
    """The lines of a lesson's source that are not prose."""
    lines = LESSONS[lesson].read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def test_what_is_made_is_in_step():
    stale = tables.filled(GUIDE) != GUIDE
    assert not stale, "Run `python -m workshop.course.sync`"
    assert set(re.findall(r"<!-- made: (\w+) -->", GUIDE)) >= {"timetables", "sections", "costs"}


def test_an_unknown_mark_is_an_error():
    with pytest.raises(plan.BadPlan, match="'lunch' made; known: timetables"):
        tables.filled("<!-- made: lunch -->\n<!-- end -->")


def test_a_timetable_takes_the_lessons_own_minutes():
    for timetable in TIMETABLES:
        blocks = {block.what: block.minutes for day in timetable.days for block in day}
        for lesson in timetable.lessons:
            if lesson in LESSONS:
                assert blocks[plan.lesson(lesson).what] == own_minutes(lesson), lesson


def test_the_three_timetables_fit_their_hours():
    assert [one.name for one in TIMETABLES] == ["Half a day", "A day", "Two days"]
    for one in TIMETABLES:
        assert 0.75 * one.hours * 60 <= one.minutes <= one.hours * 60, (one.name, one.minutes)
        assert all(sum(block.minutes for block in day) <= 8 * 60 for day in one.days), one.name
    assert set(LESSONS) <= set(TIMETABLES[-1].lessons), "two days leave a lesson out"


def test_the_clock_runs_as_long_as_the_minutes_say():
    for header in ("| from |", "| day 1 |", "| day 2 |"):
        rows = [row.cells for row in table(GUIDE, header)]
        assert len(rows) > 5
        for (clock, minutes, _), (later, _, _) in pairwise(rows):
            if minutes:  # the last row of a day has none
                passed = datetime.strptime(later, "%H:%M") - datetime.strptime(clock, "%H:%M")
                assert passed.total_seconds() == 60 * int(minutes), clock


def test_the_minutes_of_the_sections_add_up():
    for lesson, path in LESSONS.items():
        found = plan.sections(lesson)
        assert sum(found.values()) == own_minutes(lesson)
        assert list(found) == list(sections(read(path))), f"a section of {lesson} is missing"


def test_exercises_take_what_they_say(tmp_path, monkeypatch):
    (tmp_path / "solutions").mkdir()
    source = tmp_path / "solutions" / "01_x.py"
    source.write_text(
        "# ## Exercise 01.1 · One (5 minutes, easy)\n# ## Exercise 01.2 · Two (12 minutes, hard)\n"
    )
    monkeypatch.setattr(plan, "NOTEBOOKS", tmp_path)
    assert plan.exercises("01") == plan.Block("Exercises of 01 (2)", 17)
    with pytest.raises(plan.BadPlan, match=r"02_\*\.py is not there"):
        plan.exercises("02")


def test_a_seat_costs_what_its_jobs_cost():
    jobs = JOBS["00"] + JOBS["05"]
    each = [
        cost(job.instance_type, job.instance_count, PLANNED_SECONDS, job.max_run) for job in jobs
    ]
    bill = tables.seat(["00", "02", "05"])
    assert bill.jobs == len(jobs) >= 2
    assert bill.instances == sum(job.instance_count for job in jobs)
    assert bill.usd == pytest.approx(sum(one.usd for one in each))
    assert bill.most == pytest.approx(sum(one.most_usd for one in each))
    assert f"| Half a day | {tables.seat(TIMETABLES[0].lessons).jobs} |" in GUIDE


def test_a_room_needs_as_many_instances_as_its_seats_take_at_once():
    jobs = [job for lesson in LESSONS for job in JOBS[lesson]]
    rows = [row.cells for row in table(GUIDE, "| type |")]
    assert len(rows) == len({job.instance_type for job in jobs})
    for kind, *counts in rows:
        same = (job for job in jobs if f"`{job.instance_type}`" == kind)
        largest = max(job.instance_count for job in same)
        assert counts == [f"{largest}", f"{10 * largest}", f"{20 * largest}"]


def test_the_plan_knows_of_a_lessons_jobs():
    for lesson in LESSONS:
        starts = any(re.search(r"\.fit\(|run_jobs\(|\.estimator\(", line) for line in code(lesson))
        assert bool(JOBS[lesson]) == starts, f"{lesson}: its jobs and lesson_jobs.py differ"
        for job in JOBS[lesson]:
            assert job.instance_type in instance_types(lesson)


def test_the_page_of_a_folder_without_a_guide_is_left_alone(tmp_path):
    assert list(tables.pages(tmp_path)) == [tmp_path / tables.ANSWERS]
    assert tables.pages()[NOTEBOOKS / "instructor" / "guide.md"] == tables.filled(GUIDE)


def test_a_plan_that_does_not_fit_a_lesson_is_named(monkeypatch):
    planned = plan.sections("02")
    wrong = {name: minutes for name, minutes in planned.items() if name != "The ring"}
    monkeypatch.setitem(plan.plan()["sections"], "02", wrong)
    with pytest.raises(plan.BadPlan, match=r"\[sections.02\] .* differ: The ring"):
        tables.filled(GUIDE)
    monkeypatch.setitem(plan.plan()["sections"], "02", planned | {"The ring": 6})
    with pytest.raises(plan.BadPlan, match="minutes must add up to 45"):
        tables.filled(GUIDE)
