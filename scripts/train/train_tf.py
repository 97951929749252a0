"""Train an image classifier in one TensorFlow process.

    python train_tf.py --training data/digits/training --test data/digits/test

SageMaker: TensorFlow(entry_point="train_tf.py", instance_count=1, ...)
"""

import argparse
import hashlib
import json
import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # Keras 2: from TensorFlow 2.16 on, tf-keras
import tensorflow as tf


def parse_args():
    """Read the flags. SageMaker passes hyperparameters as flags and names its folders in SM_*."""
    env, kept = os.environ.get, "/opt/ml/checkpoints"
    defaults = {
        "epochs": 20,
        "global-batch-size": 64,  # examples per step, over all ranks
        "learning-rate": 0.05,
        "seed": 0,
        "max-steps": 0,  # 0: no limit
        "log-every": 10,  # steps; 0: at epoch ends alone
        "model": "small",  # or deep
        "hidden-units": 64,  # of the small model
        "threads-per-rank": 0,  # 0: this machine's cores, divided among its ranks
        "training": env("SM_CHANNEL_TRAINING", "data/digits/training"),
        "test": env("SM_CHANNEL_TEST", "data/digits/test"),
        "save-to": env("SM_MODEL_DIR", "model"),
        "checkpoint-dir": env("SM_CHECKPOINT_DIR", kept if os.path.isdir(kept) else ""),
        "checkpoint-every": 0,  # steps; 0: at epoch ends
        "model-dir": "",  # not used: the SageMaker SDK always sends it
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    for name, default in defaults.items():
        spellings = {f"--{name}": 0, f"--{name.replace('-', '_')}": 0}
        parser.add_argument(*spellings, type=type(default), default=default)
    args = parser.parse_args()
    if min(args.epochs, args.global_batch_size, args.hidden_units) < 1 or args.learning_rate <= 0:
        parser.error("epochs, global-batch-size, hidden-units and learning-rate: more than 0")
    if args.model not in ("small", "deep"):
        parser.error(f"--model {args.model}: small or deep expected")
    return args


def emit(**record):
    """Print one JSON line, in one write: the lines of several ranks don't mix."""
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


def load(folder):
    """Return a channel's images, uint8 (n, h, w, c) 0 to 255, and labels, int64 (n,) 0 to 9."""
    parts = [np.load(path) for path in sorted(Path(folder).glob("part-*.npz"))]
    if not parts:
        raise SystemExit(
            f"error: no part-*.npz in {folder}. Make some with `python -m data_prep digits`, or "
            "point --training and --test at such folders"
        )
    return [np.concatenate([part[name] for part in parts]) for name in ("images", "labels")]


def batches(args, images, labels, step):
    """Return the batches from `step` (counted from 0) to the end of its epoch.

    Whole global batches only. The seed and the epoch give the order: a resumed run has the same.
    """
    size, per_epoch = args.global_batch_size, len(labels) // args.global_batch_size
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(len(labels), seed=args.seed + step // per_epoch)
    dataset = dataset.take(per_epoch * size).skip(step % per_epoch * size)
    return dataset.batch(size)


def set_up(args, local_rank=0, local_size=1):
    """Give this process its part of the machine, and set the seed."""
    threads = args.threads_per_rank or max(1, os.cpu_count() // local_size)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[local_rank % len(gpus) :: local_size], "GPU")
    tf.keras.utils.set_random_seed(args.seed)


def build_model(args, image_shape):
    """Return a model from pixels (n, h, w, c), 0 to 255, to logits (n, 10).

    No batch normalisation, no dropout: N ranks compute exactly what one process computes.
    """
    layers = tf.keras.layers
    inputs = tf.keras.Input(image_shape)
    x = layers.Rescaling(1 / 255)(inputs)
    if args.model == "small":
        for filters in (16, 32):
            x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
            x = layers.MaxPool2D(2)(x)
        x = layers.Dense(args.hidden_units, activation="relu")(layers.Flatten()(x))
        return tf.keras.Model(inputs, layers.Dense(10)(x))

    def conv_norm(x, filters, size, strides, scale="ones"):
        x = layers.Conv2D(filters, size, strides, padding="same", use_bias=False)(x)
        return layers.GroupNormalization(8, epsilon=1e-5, gamma_initializer=scale)(x)

    x = layers.ReLU()(conv_norm(x, 64, 3, 1))  # ResNet-18 with group normalisation: 45 MB
    for filters in (64, 128, 256, 512):
        for strides in (1 if filters == 64 else 2, 1):
            y = layers.ReLU()(conv_norm(x, filters, 3, strides))
            y = conv_norm(y, filters, 3, 1, scale="zeros")  # at first a block adds nothing
            x = x if x.shape == y.shape else conv_norm(x, filters, 1, strides)
            x = layers.ReLU()(layers.Add()([x, y]))
    return tf.keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def evaluate(model, images, labels):
    """Return the share of right answers, 0 to 1."""
    parts = [model(images[i : i + 256].astype(np.float32)) for i in range(0, len(labels), 256)]
    return float(np.mean(np.argmax(np.concatenate(parts), axis=1) == labels))


def resume(args, model, optimizer):
    """Read the newest checkpoint, if there is one. Return what writes the next; None: no folder."""
    if not args.checkpoint_dir:
        return None
    state = tf.train.Checkpoint(model=model, optimizer=optimizer)  # momentum and step, too
    manager = tf.train.CheckpointManager(state, args.checkpoint_dir, max_to_keep=2)
    if manager.latest_checkpoint:
        try:
            state.restore(manager.latest_checkpoint).assert_consumed()
        except (ValueError, AssertionError, tf.errors.OpError) as error:
            raise SystemExit(
                f"error: {manager.latest_checkpoint} doesn't fit this model, or is damaged: "
                f"{error}. Choose another --checkpoint-dir"
            ) from error
        step = int(optimizer.iterations.numpy())
        emit(event="resumed", step=step, file=manager.latest_checkpoint)
    return manager


def save(model, folder):
    """Write a SavedModel to folder/1, whole or not at all: float32 images to probabilities."""
    spec = tf.TensorSpec(model.input_shape, tf.float32, name="images")
    serve = tf.function(lambda images: {"probabilities": tf.nn.softmax(model(images))}, [spec])
    partial, final = Path(folder, ".partial"), Path(folder, "1")
    tf.saved_model.save(model, str(partial), signatures={"serving_default": serve})
    shutil.rmtree(final, ignore_errors=True)
    partial.rename(final)


def main():
    """Train, evaluate after each epoch, save the model."""
    args = parse_args()
    set_up(args)
    images, labels = load(args.training)
    test = load(args.test)
    per_epoch = len(labels) // args.global_batch_size
    if not per_epoch:
        raise SystemExit(f"error: {len(labels)} examples: lower --global-batch-size to that")

    model = build_model(args, images.shape[1:])
    optimizer = tf.keras.optimizers.SGD(args.learning_rate, momentum=0.9)
    optimizer.build(model.trainable_variables)
    manager = resume(args, model, optimizer)

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            logits = model(tf.cast(images, tf.float32), training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # noqa: B905
        return loss

    emit(
        event="start",
        world_size=1,
        global_batch_size=args.global_batch_size,
        local_batch_size=args.global_batch_size,
        learning_rate=args.learning_rate,
        parameters=model.count_params(),
        gradient_bytes=4 * model.count_params(),
    )
    last = min(args.epochs * per_epoch, args.max_steps or args.epochs * per_epoch)
    step = first = int(optimizer.iterations.numpy())
    while step < last:
        losses, clock, timed_from = [], time.perf_counter(), step
        for batch in batches(args, images, labels, step).take(last - step):
            losses.append(train_step(*batch))
            step += 1
            if args.log_every and step % args.log_every == 0:
                loss = float(losses[-1])
                emit(event="step", step=step, train_loss=round(loss, 6))
            if manager and args.checkpoint_every and step % args.checkpoint_every == 0:
                manager.save(step)
            if step == first + 1:  # this one traced the function: not timed
                clock, timed_from = time.perf_counter(), step
        train_loss = float(np.mean(losses))  # waits for the last step
        timed = step - timed_from
        seconds = (time.perf_counter() - clock) / timed if timed else None
        emit(
            event="epoch",
            epoch=-(-step // per_epoch),
            step=step,
            train_loss=round(train_loss, 6),
            test_accuracy=round(evaluate(model, *test), 6),
            samples_per_second=seconds and round(args.global_batch_size / seconds, 1),
            step_seconds=seconds and round(seconds, 6),
        )
        if manager and not args.checkpoint_every:
            manager.save(step)

    weights = b"".join(weight.tobytes() for weight in model.get_weights())
    emit(event="weights", rank=0, weights_sha256=hashlib.sha256(weights).hexdigest())
    save(model, args.save_to)


if __name__ == "__main__":
    main()
