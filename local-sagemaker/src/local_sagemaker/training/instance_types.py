"""The GPUs that an instance type has, from the EC2 data that moto carries."""

from __future__ import annotations

from functools import cache

from moto.utilities.utils import load_resource

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
