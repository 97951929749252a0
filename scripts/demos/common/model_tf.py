"""The classifier in TensorFlow: build, train on, measure, save."""

import random
import shutil
from pathlib import Path

import numpy as np

from common.arguments import threads_per_rank
from common.data import CLASSES
from common.keras2 import tf


def prepare(args, local_rank: int = 0, ranks_here: int = 1) -> None:
    """Set seeds and threads, and give each rank of a machine its own GPU. Call it first."""
    threads = threads_per_rank(args.threads_per_rank, ranks_here)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[local_rank % len(gpus)], "GPU")
    set_random_seed(args.seed)


def set_random_seed(seed: int) -> None:
    """Set what weights start from. Keras 2's function of this name fails on Python 3.12."""
    random.seed(seed)
    tf.random.set_seed(seed)


def build_model(image_shape: tuple[int, ...], hidden_units: int):
    """Return a small CNN: pixels (n, height, width, channels), 0 to 255, to logits (n, 10).

    Dividing by 255 is a layer, so the saved model takes the pixels that a channel holds. There
    is no batch normalisation (its statistics would depend on the local batch) and no dropout:
    N ranks compute exactly what one process computes.
    """
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input(image_shape),
            layers.Rescaling(1 / 255),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPool2D(2),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPool2D(2),
            layers.Flatten(),
            layers.Dense(hidden_units, activation="relu"),
            layers.Dense(CLASSES),
        ]
    )


def build_optimizer(learning_rate: float, model):
    """Return SGD with momentum 0.9, its variables already made."""
    optimizer = tf.keras.optimizers.SGD(learning_rate, momentum=0.9)
    optimizer.build(model.trainable_variables)
    return optimizer


def mean_loss(model, images, labels):
    """Return the mean cross-entropy, a scalar: images (n, h, w, c) uint8, labels (n,) int64."""
    logits = model(tf.cast(images, tf.float32), training=True)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))


def accuracy(model, images: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of right answers, 0 to 1."""
    right = 0
    for start in range(0, len(labels), 1000):
        logits = model(tf.cast(images[start : start + 1000], tf.float32), training=False)
        right += int(np.sum(np.argmax(logits, axis=1) == labels[start : start + 1000]))
    return right / len(labels)


def save_model(model, folder: Path) -> None:
    """Write a SavedModel to folder/1: a servable model needs a directory with a numeric name.

    Its signature `serving_default` takes `images`, float32 (n, height, width, channels), pixels
    0 to 255, and returns `probabilities`, float32 (n, 10). A model that is there is replaced,
    and only by a complete one.
    """
    image_spec = tf.TensorSpec(model.input_shape, tf.float32, name="images")

    @tf.function(input_signature=[image_spec])
    def predict(images):
        return {"probabilities": tf.nn.softmax(model(images, training=False))}

    partial, final = Path(folder, ".partial"), Path(folder, "1")
    tf.saved_model.save(model, str(partial), signatures={"serving_default": predict})
    shutil.rmtree(final, ignore_errors=True)
    partial.replace(final)
