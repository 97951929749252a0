"""What proves, or disproves, that ranks train one model: hashes of weights and of images seen."""

import hashlib
from collections.abc import Callable

import numpy as np

from common.report import emit, weights_hash


class Evidence:
    """Notes one rank's weights at the start, after the first step and at the end, and its images.

    Args:
        rank: of this process.
        weights: the model's weights before the first step.
        optimizer_variables: how many the optimizer has before the first step.
    """

    def __init__(self, rank: int, weights: list[np.ndarray], optimizer_variables: int):
        self._record = {
            "rank": rank,
            "weights_at_start": weights_hash(weights),
            "optimizer_variables_at_start": optimizer_variables,
        }
        self._images = hashlib.sha256()  # of all, in order
        self._seen: set[str] = set()

    def step(self, images, weights: Callable[[], list], optimizer_variables: int) -> None:
        """Note a finished step's images (n, ...), and after the first step the weights too."""
        if "weights_after_first_step" not in self._record:
            self._record["weights_after_first_step"] = weights_hash(weights())
            self._record["optimizer_variables_after_first_step"] = optimizer_variables
        for image in np.asarray(images):
            pixels = image.tobytes()
            self._images.update(pixels)
            self._seen.add(hashlib.sha256(pixels).hexdigest()[:10])

    def show(self, weights: list[np.ndarray]) -> None:
        """Print the record; every rank prints its own.

        `images_seen` is one hash of all images in their order, `images` a short one of each.
        """
        emit(
            event="evidence",
            **self._record,
            weights_at_end=weights_hash(weights),
            images_seen=self._images.hexdigest(),
            images=sorted(self._seen),
        )
