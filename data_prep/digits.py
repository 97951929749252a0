"""scikit-learn's bundled handwritten digits: real data, no network needed.

1,797 grey images of 8 x 8 pixels, from the test set of the UCI "Optical Recognition of
Handwritten Digits" collection.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from data_prep.channels import Channel, write_channels

TEST_IMAGES = 360
TRAINING_SHARDS = 4
SEED = 20_240


def load() -> Channel:
    """Return all digits in a fixed shuffled order: uint8 (1797, 8, 8, 1), int64 (1797,)."""
    # Imported here: `import data_prep` in a notebook should not wait for scikit-learn.
    from sklearn.datasets import load_digits

    bundle = load_digits()
    # Pixels come as 0..16; the product needs more than the 8 bits of the result.
    images = (bundle.images.astype(np.int64) * 255 // 16).astype(np.uint8)[..., np.newaxis]
    # RandomState, not default_rng: numpy promises that its stream never changes.
    order = np.random.RandomState(SEED).permutation(len(images))
    return images[order], bundle.target.astype(np.int64)[order]


def prepare(
    out: str | Path = "data/digits",
    *,
    shards: int = TRAINING_SHARDS,
    as_tfrecord: bool = False,
    quiet: bool = False,
) -> Path:
    """Write the channels `training` (1,437 images) and `test` (360 images) below `out`.

    Each is a directory of .npz files with `images` uint8 (n, 8, 8, 1), pixels 0..255, and
    `labels` int64 (n,), 0..9. `shards` is the number of training files; the test channel
    is one file. With `as_tfrecord` the files are TFRecord files of the form that
    `data_prep.cifar10` writes. Returns `out`. Raises DataError when `out` cannot be written.
    """
    files = {"training": shards, "test": 1}
    return write_channels(Path(out), _channels, files, as_tfrecord=as_tfrecord, quiet=quiet)


def _channels() -> dict[str, Channel]:
    images, labels = load()
    end = len(images) - TEST_IMAGES
    return {"training": (images[:end], labels[:end]), "test": (images[end:], labels[end:])}
