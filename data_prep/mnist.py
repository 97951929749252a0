"""MNIST: 70,000 handwritten digits, 28 x 28 grey pixels (LeCun, Cortes, Burges)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from data_prep import idx
from data_prep.build import build
from data_prep.download import Policy
from data_prep.errors import DataError
from data_prep.npz import write_shards
from data_prep.sources import Original, check_sha256, obtain

VERSION = 1
SIDE = 28
CLASSES = 10
TRAINING_SHARDS = 8
MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)
# SHA-256 of the published files, as TensorFlow Datasets and others record them.
SHA256 = {
    "train-images-idx3-ubyte.gz": (
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
    ),
    "train-labels-idx1-ubyte.gz": (
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
    ),
    "t10k-images-idx3-ubyte.gz": (
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
    ),
    "t10k-labels-idx1-ubyte.gz": (
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
    ),
}
# The largest file has 9,912,422 bytes packed and 47,040,016 unpacked.
MAX_PACKED = 12_000_000
MAX_UNPACKED = 50_000_000
FILE_PREFIXES = {"training": "train", "test": "t10k"}


def load_split(files: Mapping[str, Path], prefix: str) -> tuple[np.ndarray, np.ndarray]:
    """Read one split ("train" or "t10k"): uint8 (n, 28, 28, 1) and int64 (n,), 0..9.

    Raises DataError when a file is unsound or the two do not belong together.
    """
    images_path = files[f"{prefix}-images-idx3-ubyte.gz"]
    labels_path = files[f"{prefix}-labels-idx1-ubyte.gz"]
    images = idx.read(images_path, 3, MAX_UNPACKED)
    labels = idx.read(labels_path, 1, MAX_UNPACKED)
    if images.shape[1:] != (SIDE, SIDE):
        raise DataError(
            f"{images_path.name} holds images of {images.shape[1]} x {images.shape[2]} pixels, "
            f"expected {SIDE} x {SIDE}"
        )
    if len(images) != len(labels) or not len(images):
        raise DataError(
            f"{images_path.name} holds {len(images)} images and {labels_path.name} "
            f"{len(labels)} labels; expected as many of both, and at least one"
        )
    if labels.max() >= CLASSES:
        raise DataError(f"{labels_path.name} holds the label {labels.max()}, expected 0 to 9")
    return images[..., np.newaxis], labels.astype(np.int64)


def prepare(
    out: str | Path = "data/mnist",
    source: str | Path | None = None,
    *,
    shards: int = TRAINING_SHARDS,
    cache: str | Path | None = None,
    checksums: Mapping[str, str] | None = None,
    mirrors: tuple[str, ...] = MIRRORS,
    policy: Policy | None = None,
    quiet: bool = False,
) -> Path:
    """Write the channels `training` (60,000 images) and `test` (10,000) below `out`.

    Each is a directory of .npz files with `images` uint8 (n, 28, 28, 1), 0..255, and
    `labels` int64 (n,), 0..9. `source` is a folder with the four .gz files or a URL
    of one; without it they are downloaded and kept in `cache` (default: `downloads/mnist`
    beside `out`). `shards` is the number of training files. Returns `out`. Raises
    DataError when the files cannot be had, are not the published ones, or `out` cannot
    be written.
    """
    out = Path(out)
    cache = Path(cache) if cache else out.parent / "downloads" / "mnist"
    sums = SHA256 if checksums is None else checksums

    def make(directory: Path) -> str:
        originals = [
            Original(name, MAX_PACKED, check_sha256(sums[name]), mirrors) for name in SHA256
        ]
        files = obtain(originals, source, cache, policy=policy, quiet=quiet)
        counts = {}
        for channel, prefix in FILE_PREFIXES.items():
            images, labels = load_split(files, prefix)
            parts = shards if channel == "training" else 1
            write_shards(directory / channel, images, labels, parts, quiet=quiet)
            counts[channel] = len(images)
        text = "wrote {training} training images in {shards} files, {test} test images"
        return text.format(shards=shards, **counts)

    recipe = {"dataset": "mnist", "version": VERSION, "shards": shards, "sha256": dict(sums)}
    return build(out, recipe, make, quiet=quiet)
