"""What catalogue.toml says of each failure; ranks.py, jobs.py and short.py reproduce them."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from workshop.failures.reproduction import CheckResult, Failure

CATALOGUE = Path(__file__).with_name("catalogue.toml")
FIELDS = {field.name for field in dataclasses.fields(Failure)}


def failures(kind: str, runs: Mapping[str, Callable[[bool], CheckResult]]) -> tuple[Failure, ...]:
    """The failures of a kind ("ranks", "jobs" or "short"). runs: what reproduces each, by name."""
    rows = entries(kind)
    if runs.keys() != {row["name"] for row in rows}:
        raise ValueError(f"{CATALOGUE.name} has other failures of {kind} than {sorted(runs)}")
    return tuple(
        Failure(run=runs[row["name"]], **{key: row[key] for key in row.keys() & FIELDS})
        for row in rows
    )


def entries(kind: str) -> list[dict]:
    """The rows of a kind, as they are written, each with the line that it shares with others."""
    table = _read()
    return [table["line"].get(row.get("line"), {}) | row for row in table[kind]]


@cache
def _read() -> dict:
    return tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))
