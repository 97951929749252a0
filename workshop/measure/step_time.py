"""What a training step takes: computing, and the part of the all-reduce that nothing hides.

    compute = Compute.from_measurements(records)    # scripts/demos/measure_steps.py
    step_seconds(compute, 64, 1_000_000, "gloo", tiers, instances=2, ranks_per_instance=2)

held_out.py predicts steps on other links and placements with it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from workshop.measure.alpha_beta import HierarchicalLinks, estimated_seconds


@dataclass(frozen=True)
class Compute:
    """What a rank computes in a step, on a core of its own.

    fixed: seconds per step. per_image, per_byte: seconds for each image of the rank's batch, and
    for each byte of gradients. per_image_byte: for each image and byte. behind: the part of a step
    that is still to be computed when the largest gradient is ready: it can travel meanwhile.
    """

    fixed: float
    per_image: float
    per_byte: float
    per_image_byte: float
    behind: float = 0.0

    def seconds(self, images: float, gradient_bytes: float) -> float:
        """Seconds of a step with so many images on this rank; never below 0."""
        of_images = (self.per_image + self.per_image_byte * gradient_bytes) * images
        return max(0.0, self.fixed + self.per_byte * gradient_bytes + of_images)

    @classmethod
    def from_measurements(cls, records: Iterable[Mapping]) -> Compute:
        """From the "steps" records of measure_steps.py on one rank: two sizes, two batches.

        The least of each record's seconds counts: other programs only ever add time.
        Raises ValueError for other counts, and for records of more ranks.
        """
        steps = [record for record in records if record.get("event") == "steps"]
        sizes = {record["gradient_bytes"] for record in steps}
        batches = {record["images"] for record in steps}
        if len(sizes) != 2 or len(batches) != 2 or len(steps) != 4:
            raise ValueError(
                f"{len(steps)} records of {len(sizes)} sizes and {len(batches)} batches: give "
                "measure_steps.py two of each, --hidden-units 512,4096 --images 32,128."
            )
        if any(record["world_size"] != 1 for record in steps):
            raise ValueError("The records are of several ranks: measure computing on one rank.")
        rows = [(record["images"], record["gradient_bytes"]) for record in steps]
        terms = [[1, images, n_bytes, images * n_bytes] for images, n_bytes in rows]
        fastest = [min(record["seconds"]) for record in steps]
        parts = [
            min(record["behind"]) / seconds
            for record, seconds in zip(steps, fastest, strict=True)
            if "behind" in record
        ]
        behind = statistics.median(parts) if parts else 0.0
        numbers = [float(value) for value in np.linalg.solve(np.array(terms, float), fastest)]
        fixed, per_image, per_byte, per_image_byte = numbers
        return cls(fixed, per_image, per_byte, per_image_byte, behind)


def step_seconds(
    compute: Compute,
    images: float,
    gradient_bytes: float,
    algorithm: str,
    tiers: HierarchicalLinks,
    *,
    instances: int,
    ranks_per_instance: int,
    overlap: float = 0.0,
    cores: float = math.inf,
) -> float:
    """Seconds of a training step.

    Args:
        images: of each rank's batch.
        algorithm, tiers: as for estimated_seconds.
        overlap: the part of the computing, 0 to 1, during which gradients already travel.
        cores: that all ranks share, as on one machine; by default each rank has its own.
    """
    world_size = instances * ranks_per_instance
    computing = compute.seconds(images, gradient_bytes) * max(1.0, world_size / cores)
    if world_size == 1:
        return computing
    travelling = estimated_seconds(algorithm, gradient_bytes, ranks_per_instance, tiers, instances)
    return computing + max(0.0, travelling - overlap * computing)
