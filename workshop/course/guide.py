"""The tables of the instructor's guide. `workshop.course.sync` writes them.

guide.md is written by hand, but for what stands between two marks:

    <!-- made: timetables -->
    ...
    <!-- end -->
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

from workshop.course import costs as costing
from workshop.course import plan
from workshop.course.lessons import lessons, number
from workshop.paths import NOTEBOOKS

GUIDE = Path("instructor") / "guide.md"
MADE = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def pages(notebooks: Path = NOTEBOOKS) -> dict[Path, str]:
    """The guide's place and the text it must have; nothing where there is no guide.

    Raises BadPlan for a mark or a plan that nothing can be made from.
    """
    path = notebooks / GUIDE
    return {path: filled(path.read_text(encoding="utf-8"))} if path.is_file() else {}


def filled(text: str) -> str:
    """A guide's text with each made part made anew. Raises BadPlan for an unknown mark."""
    makers = {
        "timetables": timetables,
        "sections": sections,
        "quotas": quotas,
        "costs": costing.timetables,
        "lesson_costs": costing.by_lesson,
        "standing_costs": costing.standing_things,
    }

    def made(match: re.Match) -> str:
        if match[2] not in makers:
            raise plan.BadPlan(f"guide.md wants {match[2]!r} made; known: {', '.join(makers)}.")
        return f"{match[1]}\n{makers[match[2]]()}\n\n{match[3]}"

    return MADE.sub(made, text)


def timetables() -> str:
    """Every timetable as a table: from, minutes, what."""
    parts = []
    for one in plan.timetables():
        hours, minutes = divmod(one.minutes, 60)
        parts.append(f"### {one.name}: {hours} h {minutes:02d} min\n\n{one.why}")
        for at, day in enumerate(one.days, 1):
            rows = [f"| {'day ' + str(at) if len(one.days) > 1 else 'from'} | min | what |"]
            clock = datetime.strptime(plan.plan()["start"], "%H:%M")
            rows.append("|---|---|---|")
            for block in day:
                rows.append(f"| {clock:%H:%M} | {block.minutes} | {block.what} |")
                clock += timedelta(minutes=block.minutes)
            parts.append("\n".join([*rows, f"| {clock:%H:%M} | | end |"]))
    return "\n\n".join(parts)


def sections() -> str:
    """A line for each lesson: its sections with their minutes."""
    lines = []
    for path in lessons():
        title, minutes = plan.lesson(number(path)), plan.sections(number(path))
        parts = [f"{name} ({count or '<1'})" for name, count in minutes.items()]
        lines.append(f"- **{title.what}, {title.minutes}:** {' · '.join(parts)}")
    return "\n".join(lines)


def quotas() -> str:
    """How many instances of each type are needed at once, by a seat and by a room."""
    most: dict[str, int] = {}
    for jobs in plan.plan()["jobs"].values():
        for job in jobs if isinstance(jobs, list) else []:
            kind = job["instance_type"]
            most[kind] = max(most.get(kind, 0), job["instance_count"])
    rows = ["| type | one seat, at once | 10 seats | 20 seats |", "|---|---|---|---|"]
    rows += [
        f"| `{kind}` | {count} | {10 * count} | {20 * count} |" for kind, count in most.items()
    ]
    return "\n".join(rows)
