"""Train an image classifier in one TensorFlow process.

    python train_tf.py --training data/digits/training --test data/digits/test

SageMaker: TensorFlow(entry_point="train_tf.py", instance_count=1, ...)
"""

import argparse
import hashlib
import json
import os
import random
import sys
import time
from pathlib import Path

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # Keras 2: from TensorFlow 2.16 on, tf-keras
import tensorflow as tf


def parse_args():
    """Read the flags. SageMaker passes hyperparameters as flags, and its folders as SM_*."""
    env = os.environ.get
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--global-batch-size", type=int, default=64, help="over all ranks")
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-steps", type=int, default=0, help="0: no limit")
    parser.add_argument("--log-every", type=int, default=10, help="steps; 0: never")
    parser.add_argument("--hidden-units", type=int, default=64)
    parser.add_argument("--threads-per-rank", type=int, default=1, help="CPU threads")
    parser.add_argument("--training", default=env("SM_CHANNEL_TRAINING", "data/digits/training"))
    parser.add_argument("--test", default=env("SM_CHANNEL_TEST", "data/digits/test"))
    parser.add_argument("--save-to", default=env("SM_MODEL_DIR", "model"))
    parser.add_argument("--model_dir", help="not used; SageMaker's TensorFlow estimator sends it")
    return parser.parse_args()


def emit(event, **record):
    """Print a JSON line with one write, so that the lines of several ranks stay whole."""
    print(json.dumps({"event": event, **record}) + "\n", end="", flush=True)


def load(folder):
    """Return a channel's images, uint8 (n, height, width, channels), and labels, int64 (n,)."""
    parts = [np.load(path) for path in sorted(Path(folder).glob("part-*.npz"))]
    assert parts, f"no part-*.npz in {folder}: `python -m data_prep digits` writes them"
    images, labels = (np.concatenate([p[key] for p in parts]) for key in ("images", "labels"))
    return images, labels


def batches(args, images, labels, epoch):
    """Return the batches of an epoch, without an incomplete last one; the seed gives the order."""
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(len(labels), seed=args.seed + epoch)
    return dataset.batch(args.global_batch_size, drop_remainder=True)


def build_model(image_shape, hidden_units):
    """Return a model from pixels, 0 to 255, (n, height, width, channels), to logits (n, 10).

    No batch norm, no dropout: with them N ranks would not compute what one process computes.
    """
    layers = tf.keras.layers
    inputs = tf.keras.Input(image_shape)
    x = layers.Rescaling(1 / 255)(inputs)
    for filters in (16, 32):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.MaxPool2D(2)(x)
    x = layers.Dense(hidden_units, activation="relu")(layers.Flatten()(x))
    return tf.keras.Model(inputs, layers.Dense(10)(x))


def evaluate(model, images, labels):
    """Return the share of right answers, 0 to 1."""
    parts = [model(images[i : i + 256].astype(np.float32)) for i in range(0, len(labels), 256)]
    return float(np.mean(np.argmax(np.concatenate(parts), axis=1) == labels))


def save(model, folder):
    """Write a SavedModel to folder/1, as a server wants it: float32 images to probabilities."""
    spec = tf.TensorSpec(model.input_shape, tf.float32, name="images")
    serve = tf.function(lambda images: {"probabilities": tf.nn.softmax(model(images))}, [spec])
    tf.saved_model.save(model, f"{folder}/1", signatures={"serving_default": serve})


def main():
    """Train, evaluate after each epoch, save the model."""
    args = parse_args()
    rank, world_size = 0, 1
    report = emit if rank == 0 else lambda *_, **__: None
    tf.config.threading.set_intra_op_parallelism_threads(args.threads_per_rank)
    random.seed(args.seed)  # Keras 2 draws from it; its set_random_seed fails on Python 3.12
    tf.random.set_seed(args.seed)
    (images, labels), test = load(args.training), load(args.test)
    if len(labels) < args.global_batch_size or args.global_batch_size % world_size:
        sys.exit(f"error: --global-batch-size: no multiple of {world_size} up to {len(labels)}")
    model = build_model(images.shape[1:], args.hidden_units)
    optimizer = tf.keras.optimizers.SGD(args.learning_rate, momentum=0.9)
    optimizer.build(model.trainable_variables)

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            logits = model(tf.cast(images, tf.float32), training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    parameters = model.count_params()
    sizes = {"parameters": parameters, "gradient_bytes": 4 * parameters}
    local_batch_size = args.global_batch_size // world_size
    report("start", world_size=world_size, local_batch_size=local_batch_size, **sizes, **vars(args))
    per_epoch = len(labels) // args.global_batch_size
    step, last = 0, min(args.epochs * per_epoch, args.max_steps or sys.maxsize)
    while step < last:
        epoch, losses = step // per_epoch, []
        for batch in batches(args, images, labels, epoch).take(last - step):
            loss = train_step(*batch)
            step += 1
            losses.append(loss)
            if len(losses) == 1:
                clock = time.perf_counter()  # an epoch's first step is left out of its speed
            if args.log_every and step % args.log_every == 0:
                report("step", step=step, train_loss=float(loss))
        record = {"train_loss": float(np.mean(losses))}  # waits for the last step
        if timed := len(losses) - 1:
            record["step_seconds"] = (time.perf_counter() - clock) / timed
            record["samples_per_second"] = args.global_batch_size / record["step_seconds"]
        accuracy = evaluate(model, *test)
        report("epoch", epoch=epoch + 1, step=step, test_accuracy=accuracy, **record)

    # Without batch norm's averages: they differ by rank.
    weights = b"".join(weight.numpy().tobytes() for weight in model.trainable_variables)
    emit("weights", rank=rank, weights_sha256=hashlib.sha256(weights).hexdigest())
    if rank == 0:
        save(model, args.save_to)


if __name__ == "__main__":
    main()
