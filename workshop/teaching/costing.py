"""What a seat costs on AWS: by lesson, by timetable, and by what stands and is forgotten.

All of it is computed from plan.toml (which jobs), the lessons (their max_run) and prices.toml.
"""

from __future__ import annotations

from dataclasses import dataclass

from workshop.account import prices
from workshop.account.prices import GRACE_SECONDS, cost, price_table
from workshop.notebooks.lessons import lessons, number
from workshop.teaching import plan


@dataclass(frozen=True)
class Bill:
    """What lessons cost one seat that runs every cell once. usd: as planned; most: at most."""

    jobs: int = 0
    instances: int = 0
    usd: float = 0.0
    most: float = 0.0

    def __add__(self, other: Bill) -> Bill:
        return Bill(
            self.jobs + other.jobs,
            self.instances + other.instances,
            self.usd + other.usd,
            self.most + other.most,
        )


def lesson(one: str) -> Bill:
    """The bill of one lesson. one: its number."""
    found = Bill()
    for job in plan.plan()["jobs"].get(one, []):
        kind, count = job["instance_type"], job["instance_count"]
        each = cost(kind, count, planned_seconds(), plan.max_run(one))
        times = job["number"]
        found += Bill(times, times * count, times * each.usd, times * each.most_usd)
    return found


def seat(numbers: list[str]) -> Bill:
    """The bill of one seat that runs these lessons."""
    return sum(map(lesson, numbers), Bill())


def planned_seconds() -> int:
    """Billed seconds that are planned for a job."""
    return plan.plan()["jobs"]["seconds"]


def timetables() -> str:
    """What a seat's jobs cost for each timetable."""
    rows = [
        f"| timetable | jobs | USD a seat, {planned_seconds()} s a job | USD a seat at most |",
        "|---|---|---|---|",
    ]
    for one in plan.timetables():
        found = seat(one.lessons)
        rows.append(f"| {one.name} | {found.jobs} | {found.usd:.2f} | {found.most:.2f} |")
    return "\n".join([*rows, "", _dated()])


def by_lesson() -> str:
    """A row for each lesson that there is: jobs, instances, minutes, USD; and their sum."""
    rows = [
        "| lesson | jobs x instances | minutes a job: planned, at most | USD | USD at most |",
        "|---|---|---|---|---|",
    ]
    numbers = [number(path) for path in lessons()]
    for one in numbers:
        rows.append(f"| {one} | {_jobs(one)} | {_minutes(one)} | {_usd(lesson(one))} |")
    whole = seat(numbers)
    count = f"{whole.jobs} jobs, {whole.instances} instances"
    return "\n".join([*rows, f"| **all** | {count} | | {_usd(whole)} |", "", _dated()])


def _jobs(one: str) -> str:
    jobs = plan.plan()["jobs"].get(one, [])
    shown = [f"{j['number']} x {j['instance_count']} `{j['instance_type']}`" for j in jobs]
    return ", ".join(shown) or "none: it runs beside the notebook"


def _minutes(one: str) -> str:
    if not plan.plan()["jobs"].get(one):
        return ""
    return f"{planned_seconds() / 60:g}, {(plan.max_run(one) + GRACE_SECONDS) / 60:g}"


def _usd(bill: Bill) -> str:
    return f"{bill.usd:.2f} | {bill.most:.2f}"


def _dated() -> str:
    used = {
        job["instance_type"]
        for jobs in plan.plan()["jobs"].values()
        for job in (jobs if isinstance(jobs, list) else [])
    }
    found = [cost(kind, 1, 0) for kind in sorted(used)]
    dates = sorted({str(one.price_date) for one in found})
    sources = " ".join(sorted({f"<{one.source}>" for one in found}))
    prices = ", ".join(f"`{one.instance_type}` {one.usd_per_hour:g} USD an hour" for one in found)
    return (
        f"Prices: {prices}; {price_table()['region']}, price list of {' to '.join(dates)}, "
        f"{sources}. How they were read: `workshop/account/prices.toml`."
    )


def standing_things() -> str:
    """What costs by the hour or by the GB while it is there: an hour, a day, a month."""
    rows = [
        "| while there is | USD | a day | a month | price of | source |",
        "|---|---|---|---|---|---|",
    ]
    for name in price_table()["idle"]:
        one = prices.idle_price(name)
        what = one.what if one.per == "hour" else f"{one.what}, 10 GB"
        monthly = one.per_month(one.example)
        daily = monthly / prices.HOURS_PER_MONTH * 24
        rows.append(
            f"| {what} | {one.usd:g} per {one.per} | {daily:.2f} | {monthly:.2f} | "
            f"{one.price_date} | <{one.source}> |"
        )
    return "\n".join(rows)
