"""scikit-learn's bundled handwritten digits: real data, no network needed.

1,797 grey images of 8 x 8 pixels, from the test set of the UCI "Optical Recognition of
Handwritten Digits" collection. Resampled to 28 x 28 they give a training step that is long enough
to be worth dividing.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from data_prep.channels import Channel, write_channels
from data_prep.errors import DataError

TEST_IMAGES = 360
TRAINING_SHARDS = 4
SEED = 20_240
SIZE = 8  # pixels of a side, as scikit-learn has them


def load(size: int = SIZE) -> Channel:
    """Return all digits in a fixed shuffled order: uint8 (1797, size, size, 1), int64 (1797,).

    Other sizes than 8 are interpolated between the 8 x 8 pixels. Raises DataError for less than 4.
    """
    if size < 4:
        raise DataError(f"--size is {size}: give at least 4, the models halve an image twice.")
    # Imported here: `import data_prep` in a notebook should not wait for scikit-learn.
    from sklearn.datasets import load_digits

    bundle = load_digits()
    # Pixels come as 0..16; the product needs more than the 8 bits of the result.
    images = (bundle.images.astype(np.int64) * 255 // 16).astype(np.uint8)
    if size != SIZE:
        from scipy.ndimage import zoom

        scale = (1, size / SIZE, size / SIZE)
        images = zoom(images, scale, order=1, mode="nearest", grid_mode=True)
    images = images[..., np.newaxis]
    # RandomState, not default_rng: numpy promises that its stream never changes.
    order = np.random.RandomState(SEED).permutation(len(images))
    return images[order], bundle.target.astype(np.int64)[order]


def prepare(
    out: str | Path | None = None,
    *,
    size: int = SIZE,
    quiet: bool = False,
) -> Path:
    """Write the channels `training` (1,437 images) and `test` (360 images) below `out`.

    Each is a directory of .npz files with `images` uint8 (n, size, size, 1), pixels 0..255, and
    `labels` int64 (n,), 0..9. `out` is by default data/digits, for other sizes than 8
    data/digits-SIZE. Returns `out`. Raises DataError when `out` cannot be written, or holds images
    of another size.
    """
    name = "digits" if size == SIZE else f"digits-{size}"
    folder = Path("data", name) if out is None else Path(out)
    files = {"training": TRAINING_SHARDS, "test": 1}
    _check_size(folder, size)
    return write_channels(folder, lambda: _channels(size), files, quiet=quiet)


def _check_size(folder: Path, size: int) -> None:
    """Raise DataError if the folder holds digits of another size."""
    part = folder / "test" / "part-00000.npz"
    if part.exists() and (there := np.load(part)["images"].shape[1]) != size:
        raise DataError(
            f"{folder} holds images of {there} x {there} pixels, not {size} x {size}: remove it, "
            'or choose another folder: --out FOLDER (out="FOLDER" in Python).'
        )


def _channels(size: int) -> dict[str, Channel]:
    images, labels = load(size)
    end = len(images) - TEST_IMAGES
    return {"training": (images[:end], labels[:end]), "test": (images[end:], labels[end:])}
