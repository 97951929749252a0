"""What an instance type has: GPUs, from the EC2 data that moto carries, and its network."""

from __future__ import annotations

import dataclasses
import tomllib
from datetime import date
from functools import cache
from pathlib import Path

from moto.utilities.utils import load_resource

NETWORK_TABLE = Path(__file__).with_name("instance_network.toml")

# Retired, so moto has them no more; scripts and notebooks still name them.
# https://aws.amazon.com/ec2/instance-types/p3/ and .../p2/, read before they were retired.
RETIRED = {
    "p2.xlarge": 1,
    "p2.8xlarge": 8,
    "p2.16xlarge": 16,
    "p3.2xlarge": 1,
    "p3.8xlarge": 4,
    "p3.16xlarge": 8,
    "p3dn.24xlarge": 8,
}


@cache
def gpus(instance_type: str) -> int:
    """Number of GPUs of an `ml.` instance type; 0 for an unknown one."""
    name = instance_type.removeprefix("ml.")
    if name in RETIRED:
        return RETIRED[name]
    # moto's file alone: its EC2 takes a second to import.
    info = load_resource("ec2/resources/instance_types.json").get(name, {})
    return sum(gpu.get("Count", 0) for gpu in info.get("GpuInfo", {}).get("Gpus", []))


@dataclasses.dataclass(frozen=True)
class NetworkPerformance:
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


def network_performance(instance_type: str) -> NetworkPerformance:
    """The figures of an `ml.` type. Raises ValueError, with the types that are known."""
    table = network_table()
    if instance_type not in table:
        raise ValueError(
            f"no network performance of '{instance_type}' is known here. Give a rate such as "
            f"200mbit, or take one of: {', '.join(table)}."
        )
    return table[instance_type]


@cache
def network_table() -> dict[str, NetworkPerformance]:
    """Every type of instance_network.toml, in its order."""
    raw = tomllib.loads(NETWORK_TABLE.read_text(encoding="utf-8"))
    return {
        name: NetworkPerformance(
            instance_type=name,
            gbit=float(row["gbit"]),
            burst_gbit=float(row["burst"]) if "burst" in row else None,
            efa=row.get("efa", False),
            source=raw["sources"][row["source"]],
            date=raw["date"],
        )
        for name, row in raw["types"].items()
    }
