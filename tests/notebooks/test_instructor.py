"""The instructor's guide: its tables add up, are in step, and lead somewhere."""

import re
from datetime import datetime
from itertools import pairwise

import pytest
from markdown_tables import LESSONS, sections, table
from test_coverage import ROWS as COVERED
from test_coverage import WRONG

from workshop.account.prices import cost
from workshop.cli import COMMANDS
from workshop.course import plan, tables
from workshop.course.lessons import lessons, number
from workshop.jobs.lesson_jobs import PLANNED_SECONDS, lesson_jobs
from workshop.paths import NOTEBOOKS, ROOT

FOLDER = NOTEBOOKS / "instructor"
GUIDE = (FOLDER / "guide.md").read_text(encoding="utf-8")
PLACES = {int(cells[0]): cells[3:5] for cells in COVERED}
BELIEFS = table(GUIDE, "| rows |")
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


@pytest.mark.parametrize("header", ["| from |", "| day 1 |", "| day 2 |"])
def test_the_clock_runs_as_long_as_the_minutes_say(header):
    rows = table(GUIDE, header)
    assert len(rows) > 5
    for (clock, minutes, _), (later, _, _) in pairwise(rows):
        if minutes:  # the last row of a day has none
            passed = datetime.strptime(later, "%H:%M") - datetime.strptime(clock, "%H:%M")
            assert passed.total_seconds() == 60 * int(minutes), clock


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_minutes_of_the_sections_add_up(lesson):
    found = plan.sections(lesson)
    assert sum(found.values()) == own_minutes(lesson)
    assert list(found) == list(sections(lesson)), "a section is missing"
    assert max(found.values()) >= 2


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
    rows = table(GUIDE, "| type |")
    assert len(rows) == len({job.instance_type for job in jobs})
    for kind, *counts in rows:
        same = (job for job in jobs if f"`{job.instance_type}`" == kind)
        largest = max(job.instance_count for job in same)
        assert counts == [f"{largest}", f"{10 * largest}", f"{20 * largest}"]


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_plan_knows_of_a_lessons_jobs(lesson):
    starts = any(re.search(r"\.fit\(|run_jobs\(|\.estimator\(", line) for line in code(lesson))
    assert bool(JOBS[lesson]) == starts, "a lesson's jobs and lesson_jobs.py differ"
    for job in JOBS[lesson]:
        assert job.instance_type in instance_types(lesson)


def test_every_wrong_claim_is_explained():
    numbers = [int(one) for cells in BELIEFS for one in cells[0].split(",")]
    assert sorted(numbers) == sorted(WRONG)


@pytest.mark.parametrize("cells", BELIEFS, ids=lambda cells: f"rows {cells[0]}")
def test_a_misunderstanding_has_its_correction_its_place_and_a_question(cells):
    rows, belief, right, where, question = cells
    assert belief and right and belief != right
    places = [PLACES[int(one)] for one in rows.split(",")]
    assert where in [f"{lesson} · {section}" if section else lesson for lesson, section in places]
    assert question.endswith("?")


@pytest.mark.parametrize("name", ["guide.md", "coverage.md"])
def test_links_lead_somewhere(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        assert target.startswith("https://") or (FOLDER / target).is_file(), target


def test_the_commands_that_the_guide_names_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"\bmake ([a-z]+)", GUIDE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target}"
    for command in set(re.findall(r"\bworkshop ([a-z]+)", GUIDE)):
        assert command in COMMANDS, f"workshop {command}"


def test_the_page_of_a_folder_without_a_guide_is_left_alone(tmp_path):
    assert list(tables.pages(tmp_path)) == [tmp_path / tables.ANSWERS]
    assert tables.pages()[NOTEBOOKS / "instructor" / "guide.md"] == tables.filled(GUIDE)
    assert [number(path) for path in lessons()] == list(LESSONS)


def test_a_plan_that_does_not_fit_a_lesson_is_named(monkeypatch):
    planned = plan.sections("02")
    wrong = {name: minutes for name, minutes in planned.items() if name != "The ring"}
    monkeypatch.setitem(plan.plan()["sections"], "02", wrong)
    with pytest.raises(plan.BadPlan, match=r"\[sections.02\] .* differ: The ring"):
        tables.filled(GUIDE)
    monkeypatch.setitem(plan.plan()["sections"], "02", planned | {"The ring": 6})
    with pytest.raises(plan.BadPlan, match="minutes must add up to 45"):
        tables.filled(GUIDE)
