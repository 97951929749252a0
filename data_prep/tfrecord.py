"""Write TFRecord files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from data_prep.errors import DataError


def write(path: Path, images: np.ndarray, labels: np.ndarray) -> None:
    """Write the file `path`: for each image a tf.train.Example with `image` and `label`.

    `images` is uint8 (n, height, width, colours): `image` has the pixels' bytes, row by row.
    `labels` is int (n,): `label` is an int64. Raises DataError without TensorFlow.
    """
    tf = _tensorflow()
    with tf.io.TFRecordWriter(str(path)) as writer:
        for image, label in zip(images, labels.tolist(), strict=True):
            # tobytes() walks the array in index order, also when it is a transposed view.
            features = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image.tobytes()])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())


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
    stderr, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(null)
