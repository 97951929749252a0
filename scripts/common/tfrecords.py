"""Read a channel of TFRecord files: each record has `image`, its bytes, and `label`."""

from collections.abc import Callable
from pathlib import Path

from common.data import CLASSES
from common.errors import ScriptError
from common.keras2 import tf

# Bytes of an image -> (height, width, channels). Bytes are in this order, so a reshape is all
# that is needed. (CIFAR-10's own files are channels first: data_prep has transposed them.)
SHAPES = {8 * 8: (8, 8, 1), 28 * 28: (28, 28, 1), 32 * 32 * 3: (32, 32, 3)}
FEATURES = {
    "image": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
}
SHUFFLED = 10_000  # examples that are held to be drawn from


class Channel:
    """The files of a channel that belong to one rank.

    Attributes: files; by_file (whether each rank has files of its own); image_shape (height,
    width, channels).

    Raises ScriptError when there is nothing to read, or something that isn't of this form.
    """

    def __init__(self, folder: Path, rank: int = 0, world_size: int = 1):
        every = sorted(folder.glob("*.tfrecord"))
        if not every:
            raise ScriptError(
                f"no *.tfrecord in {folder}. Make some with `python -m data_prep cifar10`, or "
                "`python -m data_prep digits --tfrecord`, and point --training and --test there"
            )
        # Whole files, not every N-th example: a rank then fetches only what it trains on.
        self.by_file = len(every) % world_size == 0
        self.files = every[rank::world_size] if self.by_file else every
        self._rank, self._world_size = rank, world_size
        self.image_shape = self._shape_of_first()

    def _shape_of_first(self) -> tuple[int, int, int]:
        first = next(iter(tf.data.TFRecordDataset(str(self.files[0])).take(1)), None)
        if first is None:
            raise ScriptError(f"{self.files[0]} holds no records; prepare the data again")
        try:
            size = len(tf.io.parse_single_example(first, FEATURES)["image"].numpy())
        except tf.errors.InvalidArgumentError as error:
            raise ScriptError(
                f"{self.files[0]}: its records lack `image` or `label`; prepare the data with "
                "data_prep"
            ) from error
        if size not in SHAPES:
            known = ", ".join(map(str, SHAPES))
            raise ScriptError(f"{self.files[0]}: an image of {size} bytes; expected one of {known}")
        return SHAPES[size]

    def _records(self):
        records = tf.data.TFRecordDataset([str(path) for path in self.files])
        return records if self.by_file else records.shard(self._world_size, self._rank)

    def _decoded(self, record):
        parsed = tf.io.parse_single_example(record, FEATURES)
        image = tf.reshape(tf.io.decode_raw(parsed["image"], tf.uint8), self.image_shape)
        return tf.cast(image, tf.float32), parsed["label"]

    def batches(self, local_batch: int, seed: int):
        """Return a dataset without end: float32 (local_batch, h, w, c), int64 (local_batch,)."""
        examples = self._records().shuffle(SHUFFLED, seed=seed).repeat()
        decoded = examples.map(self._decoded, num_parallel_calls=1)
        return decoded.batch(local_batch, drop_remainder=True).prefetch(1)

    def steps_per_epoch(self, local_batch: int, mean: Callable[[float], float]) -> int:
        """Return the same number on every rank. Raises ScriptError if it would be 0."""
        own = self._records().reduce(0, lambda count, _: count + 1)
        steps = int(mean(float(own))) // local_batch
        if not steps:
            raise ScriptError(
                f"this rank's part of the training channel, {int(own)} examples, is less than a "
                f"local batch of {local_batch}; lower --global-batch-size"
            )
        return steps

    def accuracy(self, model) -> float:
        """Return the share of right answers, 0 to 1. The model gives (n, 10) logits."""
        right = count = 0
        for images, labels in self._records().map(self._decoded).batch(1000):
            logits = model(images, training=False)
            if logits.shape[-1] != CLASSES:
                raise ValueError(f"expected (n, {CLASSES}) logits, got {logits.shape}")
            right += int(tf.reduce_sum(tf.cast(tf.argmax(logits, 1) == labels, tf.int32)))
            count += len(labels)
        return right / count
