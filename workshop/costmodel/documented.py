"""The tiers of large GPU instances, from documented figures. Nothing here was measured.

What they say is bandwidth. No source gives the delay of a message in a form that an all-reduce
meets, so alpha is 0 unless given: what comes out is the least time, for large tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

from local_sagemaker.jobs.network import performance
from workshop.costmodel.links import Link, SharedLinks


@dataclass(frozen=True)
class NVLink:
    """What a GPU of an instance type sends plus what it receives, GB/s, and who says so."""

    gpus: int
    gigabytes_per_second: float
    source: str
    date: str


_A100 = NVLink(
    gpus=8,
    gigabytes_per_second=600,  # 12 links of 25 GB/s each way, through NVSwitch
    source="NVLink of the third generation, as listed for p4d at "
    "https://gist.github.com/shashankprasanna/10ebe6dc1ba1d8d93db17da4e2cc890e; each way half: "
    "https://naddod.com/blog/high-performance-gpu-server-hardware-topology",
    date="2026-11-21",
)
_H100 = NVLink(
    gpus=8,
    gigabytes_per_second=900,  # 18 links of 25 GB/s each way, through NVSwitch
    source="NVLink of the fourth generation: "
    "https://www.fibermall.com/blog/nvidia-nvlink-and-nvswitch-evolution.htm; p5's 8 together: "
    "https://agenticdaily.ai/articles/aws-maps-open-source-ml-stack-to-its-accelerated-instances",
    date="2026-11-21",
)
NVLINKS = {"ml.p4d.24xlarge": _A100, "ml.p4de.24xlarge": _A100, "ml.p5.48xlarge": _H100}


def tiers(instance_type: str, alpha_inside: float, alpha_across: float):
    """(inside, across) of an instance type with a rank on each GPU. Raises ValueError.

    Inside, NVSwitch gives every GPU its whole rate whoever else sends. Across, all GPUs share
    the instance's network; one ring is taken to fill it, as NCCL does with several channels.
    """
    if instance_type not in NVLINKS:
        raise ValueError(
            f"How fast ranks of one {instance_type} talk is not documented: measure it with "
            f"scripts/measure_all_reduce.py. Documented are: {', '.join(NVLINKS)}."
        )
    each_way = NVLINKS[instance_type].gigabytes_per_second * 1e9 / 2
    network = performance(instance_type).gbit * 1e9 / 8
    inside = SharedLinks.one_each(Link(alpha_inside, 1 / each_way))
    return inside, SharedLinks.one_wire(Link(alpha_across, 1 / network))
