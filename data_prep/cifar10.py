"""CIFAR-10: 60,000 colour pictures of 32 x 32 pixels in ten classes (Krizhevsky, 2009)."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np

from data_prep.channels import Channel, write_channels
from data_prep.download import fetch

ARCHIVE = "cifar-10-binary.tar.gz"
FOLDER = "cifar-10-batches-bin"  # in the archive
TRAIN_SHARDS = 8
VALIDATION_IMAGES = 5_000
SEED = 20_240
SAMPLE_COUNTS = {"train": 2_000, "validation": 250, "test": 500}
SAMPLE_STRIDE = 4  # pixels between two cuts
# The university's own server comes last: since June 2026 it gives some 60 kB/s
# (pytorch/vision#9536), 45 minutes for this file.
MIRRORS = (
    "https://storage.googleapis.com/s4tf-hosted-binaries/datasets/CIFAR10/",
    "https://www.cs.toronto.edu/~kriz/",
)
# SHA-256 of the archive as its author published it.
SHA256 = {ARCHIVE: "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}
FILES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")


def prepare(
    out: str | Path = "data/cifar10",
    source: str | Path | None = None,
    *,
    quiet: bool = False,
) -> Path:
    """Write the channels `train` (45,000), `validation` (5,000), `test` (10,000) below `out`.

    Each is a directory of TFRecord files; a record has `image`, 32 * 32 * 3 bytes in the
    order height, width, colour, and `label`, int64, 0..9. `source` is a folder that holds
    cifar-10-binary.tar.gz, or the URL of one; without it the archive is downloaded and kept in
    `downloads/cifar10` beside `out`. Returns `out`. Raises DataError when the archive cannot be
    had, is not CIFAR-10, or `out` cannot be written.
    """
    out = Path(out)
    cache = out.parent / "downloads" / "cifar10"

    def load() -> dict[str, Channel]:
        # The archive is opened only when its checksum agrees: nothing in it can surprise.
        archive = fetch(SHA256, source, cache, MIRRORS, quiet=quiet)[ARCHIVE]
        with tarfile.open(archive) as members:
            files = [members.extractfile(f"{FOLDER}/{name}") for name in FILES]
            return channels([file.read() for file in files if file])

    files = {"train": TRAIN_SHARDS, "validation": 1, "test": 1}
    return write_channels(out, load, files, as_tfrecord=True, quiet=quiet)


def prepare_sample(out: str | Path = "data/cifar10-sample", *, quiet: bool = False) -> Path:
    """Write the channels of `prepare`, of the same form, without a network: 2,750 pictures.

    They are cut from the two photographs that come with scikit-learn. The label says where a
    picture is from: one of five columns of one of the two photographs. Pictures of different
    channels may overlap, so an accuracy on them says little: they show the form, not the task.
    Returns `out`. Raises DataError when `out` cannot be written.
    """
    files = {"train": TRAIN_SHARDS, "validation": 1, "test": 1}
    return write_channels(Path(out), _sample_channels, files, as_tfrecord=True, quiet=quiet)


def sample_bytes() -> bytes:
    """2,750 pictures as a file of CIFAR-10's binary form: records of 3,073 bytes."""
    # Imported here: `import data_prep` in a notebook should not wait for scikit-learn.
    from sklearn.datasets import load_sample_images

    records = []
    for number, photograph in enumerate(load_sample_images().images):
        height, width, _ = photograph.shape
        for top in range(0, height - 31, SAMPLE_STRIDE):
            for left in range(0, width - 31, SAMPLE_STRIDE):
                label = 5 * number + 5 * left // width
                planes = photograph[top : top + 32, left : left + 32].transpose(2, 0, 1)
                records.append(bytes([label]) + planes.tobytes())
    chosen = np.random.RandomState(SEED).permutation(len(records))[: sum(SAMPLE_COUNTS.values())]
    return b"".join(records[index] for index in chosen)


def _sample_channels() -> dict[str, Channel]:
    images, labels = decode(sample_bytes())
    ends = np.cumsum(list(SAMPLE_COUNTS.values()))[:-1]
    parts = zip(np.split(images, ends), np.split(labels, ends), strict=True)
    return dict(zip(SAMPLE_COUNTS, parts, strict=True))


def decode(data: bytes) -> Channel:
    """Turn one file's bytes into uint8 (n, 32, 32, 3) pixels and int64 (n,) labels.

    A record is one label byte, then three planes of 32 x 32: red, green, blue.
    """
    records = np.frombuffer(data, np.uint8).reshape(-1, 1 + 3 * 32 * 32)
    # First take the bytes as planes, then move the colours last. Reshaping to (n, 32, 32, 3) at
    # once keeps every value and scrambles every picture.
    planes = records[:, 1:].reshape(-1, 3, 32, 32)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), records[:, 0].astype(np.int64)


def channels(contents: list[bytes]) -> dict[str, Channel]:
    """Split the five training files at random; the sixth is the test channel."""
    images, labels = decode(b"".join(contents[:-1]))
    # RandomState, not default_rng: numpy promises that its stream never changes.
    order = np.random.RandomState(SEED).permutation(len(images))
    train, validation = np.split(order, [len(images) - VALIDATION_IMAGES])
    return {
        "train": (images[train], labels[train]),
        "validation": (images[validation], labels[validation]),
        "test": decode(contents[-1]),
    }
