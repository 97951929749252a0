"""Measurements kept for machines that cannot make them: dated, and never mixed with one's own.

Where instances are plain processes, links cannot be narrowed. A lesson then shows what was measured
elsewhere, and says so:

    kept = reference_results.load("06")
    print(kept.caption)
    kept.results["sweep"]

`python -m workshop.lesson.reference_results build/06_vpc_colocation.ipynb` keeps the results of a
lesson that was just executed on this machine, in notebooks/recorded/. What takes too long for a
lesson is measured by `python -m tools.bench --record` and kept beside them: load("07", "links").
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workshop.lesson.results import read_results
from workshop.paths import RECORDED

# lesson: the results that a machine without narrow links needs
NEEDED = {
    "02": ("events",),
    "03": ("at_server",),
    "06": ("sweep", "gradient_bytes", "placed"),
    "07": ("events", "steps"),
    "11": ("events", "link"),
    "12": ("events",),
}


@dataclass(frozen=True)
class ReferenceResults:
    """What a lesson measured once. machine: in words. results: as it saved them."""

    date: str
    machine: str
    results: dict[str, Any]

    @property
    def caption(self) -> str:
        """A sentence to print beside each of its numbers."""
        return f"Recorded on {self.date} on another machine ({self.machine}), not measured here."


def load(lesson: str, benchmark: str = "", folder: Path = RECORDED) -> ReferenceResults:
    """The recorded measurement of a lesson, or of a benchmark that it shows.

    Raises FileNotFoundError where there is none.
    """
    text = _path(lesson, benchmark, folder).read_text(encoding="utf-8")
    return ReferenceResults(**json.loads(text))


def write(lesson: str, benchmark: str, results: Mapping, folder: Path = RECORDED) -> Path:
    """Keep results with the day and this machine; returns the file that was written."""
    content = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.system()}",
        "results": results,
    }
    path = _path(lesson, benchmark, folder)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def _path(lesson: str, benchmark: str, folder: Path) -> Path:
    return folder / f"lesson_{lesson}{'_' * bool(benchmark)}{benchmark}.json"


def keep(executed: Path, folder: Path = RECORDED) -> Path:
    """Keep the results of an executed lesson; returns the file that was written.

    Raises ValueError if the notebook lacks a result, or shows kept ones itself.
    """
    lesson = executed.stem[:2]
    if lesson not in NEEDED:
        raise ValueError(f"{executed.name}: results are kept of lessons {', '.join(NEEDED)} only.")
    results = read_results(executed)
    if results.get("recorded"):
        raise ValueError(f"{executed.name} shows kept results itself: execute it where links work.")
    if missing := [name for name in NEEDED[lesson] if name not in results]:
        raise ValueError(f"{executed.name} has no {', '.join(missing)}: did it run to its end?")
    return write(lesson, "", {name: results[name] for name in NEEDED[lesson]}, folder)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{keep(Path(name))}: kept from {name}")
