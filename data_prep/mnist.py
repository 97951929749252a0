"""MNIST: 70,000 handwritten digits, 28 x 28 grey pixels (LeCun, Cortes, Burges)."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from data_prep.channels import Channel, write_channels
from data_prep.download import fetch

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


def prepare(
    out: str | Path = "data/mnist",
    source: str | Path | None = None,
    *,
    quiet: bool = False,
) -> Path:
    """Write the channels `training` (60,000 images) and `test` (10,000) below `out`.

    Each is a directory of .npz files with `images` uint8 (n, 28, 28, 1), 0..255, and
    `labels` int64 (n,), 0..9. `source` is a folder with the four .gz files or a URL
    of one; without it they are downloaded and kept in `downloads/mnist` beside `out`. Returns
    `out`. Raises DataError when the files cannot be had, are not the published ones, or `out`
    cannot be written.
    """
    out = Path(out)
    cache = out.parent / "downloads" / "mnist"

    def load() -> dict[str, Channel]:
        files = fetch(SHA256, source, cache, MIRRORS, quiet=quiet)
        return {"training": read_split(files, "train"), "test": read_split(files, "t10k")}

    return write_channels(out, load, {"training": TRAINING_SHARDS, "test": 1}, quiet=quiet)


def read_split(files: dict[str, Path], prefix: str) -> Channel:
    """Read one split ("train" or "t10k"): uint8 (n, 28, 28, 1) and int64 (n,), 0..9.

    IDX files: a header of one 32-bit number for the type and one for each dimension, then bytes.
    The files' checksums agree, so what the headers say is known.
    """
    images = gzip.decompress(files[f"{prefix}-images-idx3-ubyte.gz"].read_bytes())
    labels = gzip.decompress(files[f"{prefix}-labels-idx1-ubyte.gz"].read_bytes())
    return (
        np.frombuffer(images, np.uint8, offset=16).reshape(-1, 28, 28, 1),
        np.frombuffer(labels, np.uint8, offset=8).astype(np.int64),
    )
