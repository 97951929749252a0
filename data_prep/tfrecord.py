"""Write a channel as numbered TFRecord files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from data_prep.build import shard_counts
from data_prep.errors import DataError
from data_prep.progress import bar


def write_shards(
    channel: Path, images: np.ndarray, labels: np.ndarray, shards: int, *, quiet: bool = False
) -> None:
    """Write `part-00000.tfrecord`, ... into a new directory `channel`.

    `images` is uint8 (n, height, width, channels), `labels` int (n,). Each record is a
    tf.train.Example with `image` (the pixels' bytes, height x width x channels, row by
    row) and `label` (int64). Raises DataError without TensorFlow or if n < shards.
    """
    if images.dtype != np.uint8 or images.ndim != 4 or labels.shape != images.shape[:1]:
        raise ValueError(
            f"expected uint8 (n, height, width, channels) and n labels, "
            f"got {images.dtype} {images.shape} and {labels.shape}"
        )
    tf = _tensorflow()
    channel.mkdir(parents=True)
    start = 0
    with bar(len(images), channel.name, unit="images", quiet=quiet) as shown:
        for number, count in enumerate(shard_counts(len(images), shards)):
            path = channel / f"part-{number:05d}.tfrecord"
            with tf.io.TFRecordWriter(str(path)) as writer:
                for index in range(start, start + count):
                    writer.write(_example(tf, images[index], int(labels[index])))
                    shown.update(1)
            start += count


def _example(tf: Any, image: np.ndarray, label: int) -> bytes:
    # tobytes() walks the array in index order, also when it is a transposed view.
    features = {
        "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def _tensorflow() -> Any:
    # TensorFlow takes seconds to import and greets with warnings: only here, and quietly.
    # The variable goes away again: jobs started from the same notebook should not inherit it.
    name = "TF_CPP_MIN_LOG_LEVEL"
    ours = name not in os.environ
    os.environ.setdefault(name, "3")
    try:
        with _without_its_greeting():
            import tensorflow as tf
    except ImportError as error:
        raise DataError(
            f"writing TFRecord files needs TensorFlow ({error}). Install the kit's pinned "
            "packages, then try again."
        ) from error
    finally:
        if ours:
            del os.environ[name]
    return tf


@contextlib.contextmanager
def _without_its_greeting() -> Iterator[None]:
    """Nothing reaches the process's standard error: no level keeps the CUDA factories quiet."""
    kept, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(null)
