"""Write and read the kept measurements, a JSON file for each lesson."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workshop.lesson.results import records
from workshop.paths import REFERENCE as FOLDER

# lesson: the results of it (see workshop.record) that a machine without narrow links needs
KEEP = {
    "06": ("narrowing", "alone", "placed"),
    "07": ("events", "steps"),
}


@dataclass(frozen=True)
class Kept:
    """What a lesson measured once. machine: in words. results: as workshop.record got them."""

    date: str
    machine: str
    results: dict[str, Any]

    @property
    def caption(self) -> str:
        """A sentence to stand beside every number of it."""
        return f"Recorded on {self.date} on another machine ({self.machine}), not measured here."


def of(lesson: str, folder: Path = FOLDER) -> Kept:
    """The kept measurement of a lesson. Raises FileNotFoundError where none was kept."""
    return Kept(**json.loads((folder / f"lesson_{lesson}.json").read_text(encoding="utf-8")))


def keep(page: Path, folder: Path = FOLDER) -> Path:
    """Keep the results of an executed lesson; the file that was written.

    Raises ValueError if the page lacks a result, or shows kept ones itself.
    """
    lesson = page.stem[:2]
    found = records(page)
    if found.get("recorded"):
        raise ValueError(f"{page.name} shows kept results itself: execute it where links narrow.")
    if missing := [name for name in KEEP[lesson] if name not in found]:
        raise ValueError(f"{page.name} has no {', '.join(missing)}: was it executed to its end?")
    made = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.system()}",
        "results": {name: found[name] for name in KEEP[lesson]},
    }
    path = folder / f"lesson_{lesson}.json"
    path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    return path
