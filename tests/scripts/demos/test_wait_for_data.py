"""wait_for_data.py reads a record right. What a step waits for is measured in lesson 09."""

import sys

import numpy as np
import pytest

from workshop.paths import DEMOS

RECORDS = np.random.default_rng(3).integers(0, 10, (20, 3073), dtype=np.uint8)


def test_a_record_is_read_as_cifar_10_stores_it(monkeypatch):
    # Not syspath_prepend: it wants a whole pkg_resources, and the SDK brings one of its own.
    monkeypatch.setattr(sys, "path", [str(DEMOS), *sys.path])
    import wait_for_data

    pixels, labels = wait_for_data.parse(RECORDS.tobytes())
    assert labels.tolist() == RECORDS[:, 0].tolist()
    assert pixels.shape == (20, 3, 32, 32) and pixels[4, 1, 2, 3] == pytest.approx(
        RECORDS[4, 1 + 1024 + 2 * 32 + 3] / 255
    )
