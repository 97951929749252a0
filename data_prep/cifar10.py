"""CIFAR-10: 60,000 colour pictures of 32 x 32 pixels in ten classes (Krizhevsky, 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from data_prep import cifar_binary
from data_prep.build import build
from data_prep.download import Policy
from data_prep.errors import DataError
from data_prep.manifest import sha256_of
from data_prep.sources import Original, is_url, obtain
from data_prep.tfrecord import write_shards

VERSION = 1
ARCHIVE = "cifar-10-binary.tar.gz"
FOLDER = "cifar-10-batches-bin"
CLASS_NAMES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
TRAIN_SHARDS = 8
VALIDATION_IMAGES = 5_000
SEED = 20_240
# The university's own server comes last: since June 2026 it gives some 60 kB/s
# (pytorch/vision#9536), 45 minutes for this file. The first mirror packs the same six
# files anew, which is why the files' own checksums count, too.
MIRRORS = (
    "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/gluon/dataset/cifar10/",
    "https://storage.googleapis.com/s4tf-hosted-binaries/datasets/CIFAR10/",
    "https://www.cs.toronto.edu/~kriz/",
)
# SHA-256 of the archive as its author published it, and of the six files inside it.
SHA256 = {
    ARCHIVE: "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}
# The published archive has 170,052,171 bytes.
MAX_PACKED = 180_000_000

Split = dict[str, tuple[np.ndarray, np.ndarray]]


def prepare(
    out: str | Path = "data/cifar10",
    source: str | Path | None = None,
    *,
    shards: int = TRAIN_SHARDS,
    validation_images: int = VALIDATION_IMAGES,
    cache: str | Path | None = None,
    checksums: Mapping[str, str] | None = None,
    mirrors: tuple[str, ...] = MIRRORS,
    policy: Policy | None = None,
    quiet: bool = False,
) -> Path:
    """Write the channels `train` (45,000), `validation` (5,000), `test` (10,000) below `out`.

    Each is a directory of TFRecord files; a record has `image`, 32 * 32 * 3 bytes in the
    order height, width, colour, and `label`, int64, 0..9. `source` is a folder that holds
    cifar-10-binary.tar.gz or its unpacked files, or a URL of one; without it the archive
    is downloaded and kept in `cache` (default: `downloads/cifar10` beside `out`).
    `shards` is the number of train files. Returns `out`. Raises DataError when the archive
    cannot be had, is not CIFAR-10, or `out` cannot be written.
    """
    out = Path(out)
    cache = Path(cache) if cache else out.parent / "downloads" / "cifar10"
    sums = SHA256 if checksums is None else checksums

    def make(directory: Path) -> str:
        contents = _contents(source, cache, sums, mirrors, policy, quiet)
        return _write(directory, _split(contents, validation_images), shards, quiet)

    recipe = {
        "dataset": "cifar10",
        "version": VERSION,
        "shards": shards,
        "validation_images": validation_images,
        "sha256": dict(sums),
    }
    return build(out, recipe, make, quiet=quiet)


def _write(directory: Path, channels: Split, shards: int, quiet: bool) -> str:
    for channel, (images, labels) in channels.items():
        parts = shards if channel == "train" else 1
        write_shards(directory / channel, images, labels, parts, quiet=quiet)
    counts = ", ".join(f"{len(labels)} {name}" for name, (_, labels) in channels.items())
    return f"wrote {counts} images, train in {shards} files"


def _contents(
    source: str | Path | None,
    cache: Path,
    sums: Mapping[str, str],
    mirrors: tuple[str, ...],
    policy: Policy | None,
    quiet: bool,
) -> dict[str, bytes]:
    """Get the six files' bytes, checked, from unpacked files or from an archive."""
    if source is not None and not is_url(source):
        folder = Path(source)
        for place in (folder, folder / FOLDER):
            if (place / cifar_binary.TEST_FILE).is_file():
                return _unpacked(place, sums)
        if (folder / "cifar-10-python.tar.gz").is_file() and not (folder / ARCHIVE).is_file():
            raise DataError(
                f"{folder} holds the Python version of CIFAR-10; this kit reads the binary "
                f"version, which needs no pickle. Give a folder that holds {ARCHIVE} with "
                "--source FOLDER, or leave --source out to download it."
            )

    def check(path: Path) -> None:
        if sha256_of(path) != sums[ARCHIVE]:
            # Not the author's own packing: then each file must be his.
            cifar_binary.check_contents(cifar_binary.read_archive(path), sums)

    original = Original(ARCHIVE, MAX_PACKED, check, mirrors)
    paths = obtain([original], source, cache, policy=policy, quiet=quiet)
    return cifar_binary.read_archive(paths[ARCHIVE])


def _unpacked(folder: Path, sums: Mapping[str, str]) -> dict[str, bytes]:
    try:
        contents = cifar_binary.read_folder(folder)
        cifar_binary.check_contents(contents, sums)
    except (DataError, OSError) as error:
        raise DataError(
            f"{folder} cannot be used: {error}. Give a folder that holds {ARCHIVE} or its six "
            "unpacked files with --source FOLDER, or leave --source out to download it."
        ) from error
    return contents


def _split(contents: Mapping[str, bytes], validation_images: int) -> Split:
    """Shuffle the training pictures in a fixed way and put the last ones aside."""
    batches = [cifar_binary.decode(contents[name], name) for name in cifar_binary.TRAIN_FILES]
    images = np.concatenate([batch[0] for batch in batches])
    labels = np.concatenate([batch[1] for batch in batches])
    if not 0 < validation_images < len(images):
        raise DataError(
            f"cannot put {validation_images} of {len(images)} training images aside for "
            f"validation: expected 1 to {len(images) - 1}"
        )
    # RandomState, not default_rng: numpy promises that its stream never changes.
    order = np.random.RandomState(SEED).permutation(len(images))
    train, validation = np.split(order, [len(images) - validation_images])
    return {
        "train": (images[train], labels[train]),
        "validation": (images[validation], labels[validation]),
        "test": cifar_binary.decode(contents[cifar_binary.TEST_FILE], cifar_binary.TEST_FILE),
    }
