"""Run a learner's Horovod training on this rank, and print the evidence.

    mpirun -np 2 python scripts/demos/parallel/practice_horovod.py ANSWER

ANSWER: a file in which cloudpickle has written the learner's function. Every rank prints

    {"event": "evidence", "rank": 0, "initialized": true, "pinned": [1], "saved": 1,
     "images": [0, 2, ...], "all_images": 384, "first_weights": "3fa2...", "weights": "77b0...",
     "expected": 1e-8}

images: the numbers of the images that it computed a loss of. first_weights, weights: a hash of its
weights at its first loss and at its end. expected: how far its weights are from those of one
process, the largest difference.
"""

import sys
from pathlib import Path

import cloudpickle
import numpy as np

from common.keras2 import tf  # before Horovod

# isort: split
import horovod.tensorflow as hvd
from train_tf import build_model

from common.model_tf import mean_loss
from common.report import emit, weights_hash

STEPS, BATCH, RATE = 6, 64, 0.05
HIDDEN = 64


def main() -> None:
    """Call the learner's function, then train the same in this process alone."""
    answer = cloudpickle.loads(Path(sys.argv[1]).read_bytes())
    tf.config.threading.set_intra_op_parallelism_threads(1)
    generator = np.random.default_rng(0)
    images = generator.integers(256, size=(STEPS * BATCH, 8, 8, 1), dtype=np.uint8)
    labels = generator.integers(10, size=len(images))
    numbers = {image.tobytes(): number for number, image in enumerate(images)}
    seen: list[int] = []
    first: list[list[np.ndarray]] = []
    pinned: list[int] = []
    saved: list[object] = []
    # One host, so both are equal here. On several hosts they differ, and so they do now.
    hvd.local_rank = lambda: hvd.size() - 1 - hvd.rank()

    def loss_of(model, images, labels):
        if not first:
            first.append(model.get_weights())
        seen.extend(numbers[np.asarray(image).tobytes()] for image in images)
        return mean_loss(model, images, labels)

    settings = {"steps": STEPS, "global_batch_size": BATCH, "learning_rate": RATE}
    model = answer(images, labels, loss_of, pinned.append, saved.append, **settings)
    initialized = hvd.is_initialized()
    if not initialized:  # to say who this is
        hvd.init()
    weights = model.get_weights() if hasattr(model, "get_weights") else []
    expected = trained_alone(first[0], images, labels) if first else []
    apart = [np.abs(a - b).max() for a, b in zip(weights, expected, strict=False)]
    emit(
        event="evidence",
        rank=hvd.rank(),
        initialized=initialized,
        pinned=pinned,
        saved=len(saved),
        images=seen,
        all_images=len(images),
        first_weights=weights_hash(first[0]) if first else "",
        weights=weights_hash(weights),
        expected=float(max(apart, default=np.inf)),
    )


def trained_alone(weights: list[np.ndarray], images: np.ndarray, labels: np.ndarray) -> list:
    """The weights that one process ends with, from these at the start, on whole batches."""
    model = build_model(images.shape[1:], HIDDEN)
    model.set_weights(weights)
    optimizer = tf.keras.optimizers.SGD(RATE, momentum=0.9)
    for start in range(0, len(images), BATCH):
        rows = slice(start, start + BATCH)
        with tf.GradientTape() as tape:
            loss = mean_loss(model, images[rows], labels[rows])
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return model.get_weights()


if __name__ == "__main__":
    main()
