"""The bandwidth between a job's instances: on this machine, and what AWS documents of a type.

    estimator = TensorFlow(..., environment={"LOCAL_SAGEMAKER_BANDWIDTH": "200mbit"})
    bandwidth.network_performance("ml.c5.xlarge").gbit

Every instance sends at most the rate, and receives at most the rate, at the same time. Processes
of one instance talk over its own loopback, which has no limit. AWS ignores the variable: there the
instance type decides.
"""

from __future__ import annotations

import dataclasses
import tomllib
from datetime import date
from functools import cache
from pathlib import Path

import local_sagemaker
from workshop.jobs.session import Session

NETWORK_TABLE = Path(__file__).with_name("instance_network.toml")


@dataclasses.dataclass(frozen=True)
class NetworkPerformance:
    """What AWS documents of an instance type's network.

    gbit: Gbit/s that hold, in each direction. burst_gbit: Gbit/s for a limited time, None where
    that is not more, or the source does not say. efa: whether the type supports an Elastic Fabric
    Adapter. source, date: where the figures are from, and when they were read.
    """

    gbit: float
    burst_gbit: float | None
    efa: bool
    source: str
    date: date


def network_performance(instance_type: str) -> NetworkPerformance:
    """The figures of an `ml.` type. Raises ValueError, with the types that are known."""
    table = network_table()
    if instance_type not in table:
        raise ValueError(
            f"no network performance of '{instance_type}' is known here, but of {', '.join(table)}."
        )
    return table[instance_type]


@cache
def network_table() -> dict[str, NetworkPerformance]:
    """Every type of instance_network.toml, in its order."""
    raw = tomllib.loads(NETWORK_TABLE.read_text(encoding="utf-8"))
    return {
        name: NetworkPerformance(
            gbit=float(row["gbit"]),
            burst_gbit=float(row["burst"]) if "burst" in row else None,
            efa=row.get("efa", False),
            source=raw["sources"][row["source"]],
            date=raw["date"],
        )
        for name, row in raw["types"].items()
    }


def mbit(between: str) -> float:
    """The rate of "200mbit" in Mbit/s; infinity for "wide". Raises ValueError for anything else."""
    limit = local_sagemaker.parse_bandwidth(between)
    return limit.rate / 1e6 if limit else float("inf")


def unlimited_reason(session: Session) -> str | None:
    """Why bandwidth cannot be limited in this session, as a sentence; None if it can."""
    if session.target == "aws":
        return "On AWS each instance has the bandwidth of its type, and nobody limits it."
    emulator = local_sagemaker.running(local_sagemaker.state_directory())
    if emulator and emulator.isolation == "processes":
        return f"Bandwidth is unlimited: instances are plain processes, because {emulator.why}."
    if reason := local_sagemaker.shaping_unavailable_reason():
        return f"Bandwidth is unlimited: {reason}."
    return None
