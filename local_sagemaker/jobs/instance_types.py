"""What an instance type has, from the EC2 data that moto carries."""

from __future__ import annotations

from functools import cache

from moto.ec2.models.instance_types import INSTANCE_TYPES


@cache
def gpus(instance_type: str) -> int:
    """Number of GPUs of an `ml.` instance type; 0 for one that moto does not know."""
    info = INSTANCE_TYPES.get(instance_type.removeprefix("ml."), {})
    return sum(one.get("Count", 0) for one in info.get("GpuInfo", {}).get("Gpus", []))
