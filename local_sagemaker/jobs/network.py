"""The documented network performance of instance types, and what "by-type" makes of it here."""

from __future__ import annotations

import dataclasses
import tomllib
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("network.toml")
SCALE = 1000


@dataclasses.dataclass(frozen=True)
class Performance:
    """What AWS documents of a type's network.

    gbit: Gbit/s that hold, in each direction. burst_gbit: Gbit/s for a limited time, None where
    there is no more than `gbit`. efa: whether the type has an Elastic Fabric Adapter. source and
    date: where and when the figures were read.
    """

    instance_type: str
    gbit: float
    burst_gbit: float | None
    efa: bool
    source: str
    date: str


def performance(instance_type: str) -> Performance:
    """The figures of an `ml.` type. Raises ValueError, with the types that are known."""
    known = table()
    if instance_type not in known:
        raise ValueError(
            f"no network performance of {instance_type} is known here. Give a rate such as "
            f"200mbit, or take one of: {', '.join(known)}."
        )
    return known[instance_type]


def scaled(known: Performance) -> float:
    """Bit/s of a link here that stands for the type's own: its Gbit/s, divided by SCALE."""
    return known.gbit * 1e9 / SCALE


@cache
def table() -> dict[str, Performance]:
    """Every type of network.toml, in its order."""
    raw = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {
        name: Performance(
            name,
            row["gbit"],
            row.get("burst"),
            row.get("efa", False),
            raw["sources"][row["source"]],
            str(raw["date"]),
        )
        for name, row in raw["types"].items()
    }
