"""A worker's part of the data as a file that TensorFlow reads on the worker itself.

The coordinator describes the input pipeline once and every worker runs it. So the file has the
same name on each of them, relative to the worker's working directory, which is its own.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from common.errors import ScriptError
from common.keras2 import tf
from common.report import emit

_NAME = "shard.bin"  # one record an example: the label, one byte, then the image's bytes
_SHUFFLE_BUFFER = 60_000  # examples: more than a shard of the workshop's data sets holds


@contextmanager
def own_shard(args, images: np.ndarray, labels: np.ndarray, cluster) -> Iterator[None]:
    """While in the block, this worker's part lies in the working directory, a temporary folder.

    --shard-by example gives worker w the examples w, w + workers, ...; --shard-by class gives
    it all examples of the classes w, w + workers, ... and none of the others. What it got is
    printed.

    Raises:
        ScriptError: the part is smaller than one of the worker's batches.
    """
    owner = labels if args.shard_by == "class" else np.arange(len(labels))
    mine = owner % cluster.workers == cluster.task_index
    count = int(np.count_nonzero(mine))
    if count < args.global_batch_size // cluster.workers:
        raise ScriptError(
            f"worker {cluster.task_index} of {cluster.workers} would get {count} examples, fewer "
            "than one of its batches: use fewer workers or a smaller --global-batch-size"
        )
    classes = sorted({int(label) for label in labels[mine]})
    emit(event="shard", worker=cluster.task_index, examples=count, classes=classes)
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="worker-shard-") as folder:
        os.chdir(folder)
        flat = images[mine].reshape(count, -1)
        np.hstack([labels[mine, None].astype(np.uint8), flat]).tofile(_NAME)
        try:
            yield
        finally:
            os.chdir(before)


def read_shard(image_shape: tuple[int, int, int], batch: int, seed: int):
    """Return an endless, shuffled tf.data.Dataset of batches of the file.

    An element is (images uint8 (batch, height, width, channels), labels int64 (batch,)).
    """

    def split(record):
        values = tf.io.decode_raw(record, tf.uint8)
        return tf.reshape(values[1:], image_shape), tf.cast(values[0], tf.int64)

    records = tf.data.FixedLengthRecordDataset(_NAME, 1 + int(np.prod(image_shape)))
    return records.shuffle(_SHUFFLE_BUFFER, seed=seed).repeat().map(split).batch(batch)
