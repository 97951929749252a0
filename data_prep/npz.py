"""Write a channel as numbered .npz files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from data_prep.build import shard_counts
from data_prep.progress import bar


def write_shards(
    channel: Path, images: np.ndarray, labels: np.ndarray, shards: int, *, quiet: bool = False
) -> None:
    """Write `part-00000.npz`, `part-00001.npz`, ... into a new directory `channel`.

    `images` is uint8 (n, height, width, channels), `labels` is int64 (n,). Each file holds
    both arrays under these names. Raises DataError if n < shards.
    """
    if images.dtype != np.uint8 or images.ndim != 4 or labels.shape != images.shape[:1]:
        raise ValueError(
            f"expected uint8 (n, height, width, channels) and n labels, "
            f"got {images.dtype} {images.shape} and {labels.shape}"
        )
    channel.mkdir(parents=True)
    start = 0
    with bar(len(images), channel.name, unit="images", quiet=quiet) as shown:
        for number, count in enumerate(shard_counts(len(images), shards)):
            part = slice(start, start + count)
            np.savez_compressed(
                channel / f"part-{number:05d}.npz",
                images=images[part],
                labels=labels[part].astype(np.int64),
            )
            start += count
            shown.update(count)
