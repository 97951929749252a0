"""The documented network performance of instance types, and what "by-type" makes of it here."""

from __future__ import annotations

import dataclasses
import tomllib
from datetime import date
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("instance_network.toml")

# One factor for all types, so that their proportions stay. A thousand, because then a type's
# Gbit/s on AWS are as many Mbit/s here, and because two cores can still fill the link of the
# fastest type in the table (ml.p5.48xlarge, 3200 Gbit/s: 3.2 Gbit/s here).
SCALE = 1000


@dataclasses.dataclass(frozen=True)
class Performance:
    """What AWS documents of a type's network.

    gbit: Gbit/s that hold, in each direction. burst_gbit: Gbit/s for a limited time, None where
    that is not more, or the source does not say. efa: whether the type supports an Elastic Fabric
    Adapter. source, date: where the figures are from, and when they were read.
    """

    instance_type: str
    gbit: float
    burst_gbit: float | None
    efa: bool
    source: str
    date: date


def performance(instance_type: str) -> Performance:
    """The figures of an `ml.` type. Raises ValueError, with the types that are known."""
    known = table()
    if instance_type not in known:
        raise ValueError(
            f"no network performance of '{instance_type}' is known here. Give a rate such as "
            f"200mbit, or take one of: {', '.join(known)}."
        )
    return known[instance_type]


def scaled(known: Performance) -> float:
    """Bit/s of a link here that stands for the type's own: its Gbit/s, divided by SCALE."""
    return known.gbit * 1e9 / SCALE


@cache
def table() -> dict[str, Performance]:
    """Every type of instance_network.toml, in its order."""
    raw = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {name: _row(name, row, raw) for name, row in raw["types"].items()}


def _row(name: str, row: dict, raw: dict) -> Performance:
    return Performance(
        instance_type=name,
        gbit=float(row["gbit"]),
        burst_gbit=float(row["burst"]) if "burst" in row else None,
        efa=row.get("efa", False),
        source=raw["sources"][row["source"]],
        date=raw["date"],
    )
