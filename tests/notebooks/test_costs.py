"""The cost tables of the instructor's guide, computed a second time from the bare files."""

import re
import tomllib
from datetime import date

import pytest
from course_text import lessons, table

from workshop.account import prices
from workshop.account.prices import GRACE_SECONDS, PRICES, PriceNotKnown
from workshop.course import tables
from workshop.jobs.lesson_jobs import PLANNED_SECONDS, lesson_jobs
from workshop.paths import NOTEBOOKS

LESSONS = lessons()
GUIDE = (NOTEBOOKS / "instructor" / "guide.md").read_text(encoding="utf-8")
PRICE = tomllib.loads(PRICES.read_text(encoding="utf-8"))
JOBS = {lesson: lesson_jobs(lesson) for lesson in LESSONS}


def rows(header: str) -> dict[str, list[str]]:
    """A table of the guide: first cell -> the others."""
    return {row.cells[0]: row.cells[1:] for row in table(GUIDE, header)}


ROWS = rows("| lesson | jobs")
STANDING = {name.removesuffix(", 10 GB"): cells for name, cells in rows("| while there").items()}


def instance_hours(lesson: str, seconds: float | None = None) -> dict[str, float]:
    """Instance type -> hours of a lesson's instances: at most, or for so many seconds."""
    found: dict[str, float] = {}
    for job in JOBS[lesson]:
        each = job.max_run + GRACE_SECONDS if seconds is None else seconds
        hours = job.instance_count * each / 3600
        found[job.instance_type] = found.get(job.instance_type, 0) + hours
    return found


def usd(hours: dict[str, float]) -> float:
    return sum(PRICE["instances"][kind]["usd_per_hour"] * amount for kind, amount in hours.items())


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lessons_row_is_what_its_jobs_cost(lesson):
    jobs, minutes, planned, most = ROWS[lesson]
    assert float(planned) == round(usd(instance_hours(lesson, PLANNED_SECONDS)), 2)
    assert float(most) == round(usd(instance_hours(lesson)), 2)
    shown = re.findall(r"(\d+) x (\d+) `(\S+)`", jobs)
    kinds = [(job.instance_count, job.instance_type) for job in JOBS[lesson]]
    assert {(int(n), int(count), kind) for n, count, kind in shown} == {
        (kinds.count(kind), *kind) for kind in kinds
    }
    for job in JOBS[lesson]:
        assert minutes == f"{PLANNED_SECONDS / 60:g}, {(job.max_run + GRACE_SECONDS) / 60:g}"
    assert bool(JOBS[lesson]) == ("none" not in jobs)


def test_the_last_row_is_the_bound_of_the_whole_course():
    jobs, _, planned, most = ROWS["**all**"]
    all_jobs = [job for lesson in LESSONS for job in JOBS[lesson]]
    instances = sum(job.instance_count for job in all_jobs)
    assert jobs == f"{len(all_jobs)} jobs, {instances} instances"
    exact = sum(usd(instance_hours(one, PLANNED_SECONDS)) for one in LESSONS)
    bound = sum(usd(instance_hours(one)) for one in LESSONS)
    assert (float(planned), float(most)) == (round(exact, 2), round(bound, 2))
    assert list(ROWS) == [*LESSONS, "**all**"]


def test_the_whole_course_is_the_longest_timetable():
    assert rows("| timetable |")["Two days"][1:] == ROWS["**all**"][2:]


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lessons_header_names_what_the_table_says(lesson):
    """The lesson's own estimate; it may plan other minutes than the table, and says so."""
    header = LESSONS[lesson].read_text(encoding="utf-8").split("# %%")[1]
    said = header.split("**Cost on AWS:**")[1]
    planned, most = map(float, ROWS[lesson][2:])
    for job in JOBS[lesson]:
        assert f"`{job.instance_type}`" in said
    amounts = [float(one) for one in re.findall(r"about ([\d.]+) USD", said)]
    assert all(0.5 * planned <= one <= most for one in amounts)
    bounds = [float(one) for one in re.findall(r"[Aa]t most ([\d.]+) USD", said)]
    assert all(one == most for one in bounds)


def test_the_prices_are_named_with_their_date_and_source():
    below = GUIDE.split("| **all** |")[1].split("<!-- end -->")[0]
    for kind in {job.instance_type for lesson in LESSONS for job in JOBS[lesson]}:
        row = PRICE["instances"][kind]
        assert f"`{kind}` {row['usd_per_hour']:g} USD an hour" in below
        assert str(row["price_date"]) in below
        assert PRICE["sources"][row["source"]]["address"] in below


@pytest.mark.parametrize("name", PRICE["idle"])
def test_what_stands_has_a_dated_price_in_the_table(name):
    row = PRICE["idle"][name]
    given, daily, monthly, of, source = STANDING[row["what"]]
    assert given == f"{row['usd']:g} per {row['per']}"
    month = row["usd"] * (730 if row["per"] == "hour" else 10)
    assert float(monthly) == pytest.approx(month, abs=0.005)
    assert float(daily) == pytest.approx(month / 730 * 24, abs=0.005)
    assert of == str(row["price_date"]) and date(2026, 1, 1) <= row["price_date"]
    found = PRICE["sources"][row["source"]]
    assert source == f"<{found['address']}>" and found["read"] >= row["price_date"]
    assert found["how"]


def test_a_price_that_is_not_there_is_not_guessed():
    with pytest.raises(PriceNotKnown, match=r"no row \[idle\] for 'endpoint ml.p4d'"):
        prices.idle_price("endpoint ml.p4d")
    assert prices.usd_per_month("endpoint ml.p4d") is None
    assert prices.usd_per_month("nat-gateway", 2) == pytest.approx(2 * 0.045 * 730)
    assert prices.usd_per_month("s3", 5 * prices.GB) == pytest.approx(5 * 0.023)


def test_bills_add_up():
    one, two, both = tables.seat(["00"]), tables.seat(["03"]), tables.seat(["00", "03"])
    assert both.jobs == one.jobs + two.jobs == 3
    assert both.instances == one.instances + two.instances
    assert both.usd == pytest.approx(one.usd + two.usd) and both.usd < both.most
    assert tables.seat([]) == tables.Bill()
