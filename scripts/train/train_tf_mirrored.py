"""Train an image classifier on all GPUs of one machine with TensorFlow's MirroredStrategy.

    python train_tf_mirrored.py --training data/digits/training --test data/digits/test

Without GPUs it trains on --devices logical CPUs, which share the cores: to try it, not for speed.
SageMaker: TensorFlow(entry_point="train_tf_mirrored.py", instance_count=1,
    instance_type=one with several GPUs, ...), no distribution
"""

import argparse
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # Keras 2: from TensorFlow 2.16 on, tf-keras
import tensorflow as tf


def fail(message):
    """End with one sentence."""
    sys.exit(f"error: {message}")


def parse_args():
    """Read the flags. SageMaker passes hyperparameters as flags, and its folders as SM_*."""
    env = os.environ.get
    kept = "/opt/ml/checkpoints" if os.path.isdir("/opt/ml/checkpoints") else ""
    defaults = {
        "epochs": 20,
        "devices": 0,  # 0: every GPU; without GPUs 2 logical CPUs
        "global_batch_size": 64,  # examples in a step, over all ranks
        "learning_rate": 0.05,
        "seed": 0,
        "max_steps": 0,  # 0: no limit
        "log_every": 10,  # steps; 0: only at the end of each epoch
        "hidden_units": 64,
        "threads_per_rank": 0,  # 0: this machine's cores, divided among its ranks
        "training": env("SM_CHANNEL_TRAINING", "data/digits/training"),
        "test": env("SM_CHANNEL_TEST", "data/digits/test"),
        "save_to": env("SM_MODEL_DIR", "model"),
        "checkpoint_dir": env("SM_CHECKPOINT_DIR", kept),  # "": no checkpoints
        "checkpoint_every": 0,  # steps; 0: at the end of each epoch
        "model_dir": "",  # not used, but SageMaker's SDK always sends it
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.error = fail
    for name, default in defaults.items():
        spellings = {f"--{name}", f"--{name.replace('_', '-')}"}
        parser.add_argument(*spellings, type=type(default), default=default)
    args = parser.parse_args()
    for name, value in vars(args).items():
        may_be_0 = name not in ("epochs", "global_batch_size", "learning_rate", "hidden_units")
        if not (isinstance(value, str) or 0 < value < float("inf") or (value == 0 and may_be_0)):
            fail(f"--{name} {value}: expected a number above 0")
    return args


def try_folders(*folders):
    """Fail now, and not after the training, where one can't be written."""
    for folder in filter(None, folders):
        try:
            os.makedirs(folder, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            fail(f"can't write to {folder} ({error}): choose --save-to and --checkpoint-dir")


def emit(event, **record):
    """Print one JSON line with one write, so that the lines of several ranks stay whole."""
    print(json.dumps({"event": event, **record}) + "\n", end="", flush=True)


def load(folder):
    """Return a channel's images, uint8 (n, height, width, channels), and labels, int64 (n,)."""
    try:
        parts = [np.load(path) for path in sorted(Path(folder).glob("part-*.npz"))]
        assert parts, "no part-*.npz in it"
        images, labels = (np.concatenate([p[key] for p in parts]) for key in ("images", "labels"))
        assert images.dtype == np.uint8 and images.ndim == 4 and min(images.shape[1:3]) >= 4
        assert labels.shape == images.shape[:1] and 0 <= labels.min() <= labels.max() <= 9
    except Exception as error:  # no files, damaged files, or files of something else
        fail(
            f"{folder} can't be used ({str(error) or 'other arrays'}). Expected: part-*.npz with "
            "images, uint8 (n, height, width, channels), 4 x 4 pixels or more, and labels (n,), 0 "
            "to 9. Point --training and --test at such folders; on SageMaker, name the channels so "
            "(the workshop's own data: `python -m data_prep digits`)"
        )
    return images, labels


def batches(args, images, labels, step):
    """Return the batches from `step` to the end of its epoch; seed and epoch give the order."""
    size, per_epoch = args.global_batch_size, len(labels) // args.global_batch_size
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(len(labels), seed=args.seed + step // per_epoch)
    dataset = dataset.take(per_epoch * size).skip(step % per_epoch * size)
    options = tf.data.Options()
    options.autotune.enabled = False  # nothing to tune, and ending its thread can take 40 ms
    return dataset.batch(size).with_options(options)


def set_up(args, local_rank=0, ranks_here=1):
    """Give this process its part of the machine's cores and GPUs, and set the seed."""
    threads = args.threads_per_rank or max(1, os.cpu_count() // ranks_here)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[local_rank % len(gpus) :: ranks_here], "GPU")
    for gpu in gpus:  # else the first process takes all of a GPU's memory
        tf.config.experimental.set_memory_growth(gpu, True)
    tf.keras.utils.set_random_seed(args.seed)


def choose_devices(count):
    """Return the names of `count` GPUs or, without any, of as many new logical CPUs."""
    if gpus := tf.config.list_physical_devices("GPU"):
        return [f"GPU:{index}" for index in range(count or len(gpus))]
    parts = [tf.config.LogicalDeviceConfiguration()] * (count or 2)
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], parts)
    return [f"CPU:{index}" for index in range(len(parts))]


def build_model(args, image_shape):
    """Return a model from pixels, 0 to 255, (n, height, width, channels), to logits (n, 10).

    No batch norm, no dropout: with them N ranks would not compute what one process computes.
    """
    layers = tf.keras.layers
    inputs = tf.keras.Input(image_shape)
    x = layers.Rescaling(1 / 255)(inputs)
    for filters in (16, 32):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.MaxPool2D(2)(x)
    x = layers.Dense(args.hidden_units, activation="relu")(layers.Flatten()(x))
    return tf.keras.Model(inputs, layers.Dense(10)(x))


def evaluate(model, images, labels):
    """Return the share of right answers, 0 to 1."""
    parts = [model(images[i : i + 256].astype(np.float32)) for i in range(0, len(labels), 256)]
    return float(np.mean(np.argmax(np.concatenate(parts), axis=1) == labels))


def resume(args, model, optimizer):
    """Read the newest checkpoint, if there is one; return what writes them. None: no folder."""
    if not args.checkpoint_dir:
        return None
    state = tf.train.Checkpoint(model=model, optimizer=optimizer)  # momentum, step; no random state
    manager = tf.train.CheckpointManager(state, args.checkpoint_dir, max_to_keep=2)
    try:
        if newest := manager.latest_checkpoint:
            state.restore(newest).assert_consumed()
            emit("resumed", step=int(optimizer.iterations.numpy()), file=newest)
    except Exception as error:  # damaged, of another model, or not readable
        fail(f"{newest} can't be used ({repr(error)[:160]}). Move {args.checkpoint_dir} away")
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
    try_folders(args.save_to, args.checkpoint_dir)
    set_up(args)
    strategy = tf.distribute.MirroredStrategy(choose_devices(args.devices))
    world_size = strategy.num_replicas_in_sync  # one for each device
    (images, labels), test = load(args.training), load(args.test)
    if len(labels) < args.global_batch_size or args.global_batch_size % world_size:
        fail(
            f"--global-batch-size {args.global_batch_size}: expected a multiple of "
            f"{world_size} ranks, and at most the {len(labels)} examples"
        )
    with strategy.scope():  # variables made here are mirrored: every replica has a copy
        model = build_model(args, images.shape[1:])
        optimizer = tf.keras.optimizers.SGD(args.learning_rate, momentum=0.9)
        optimizer.build(model.trainable_variables)
    manager = resume(args, model, optimizer)

    def train_step(images, labels):
        with tf.GradientTape() as tape:
            logits = model(tf.cast(images, tf.float32), training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            # apply_gradients adds up all replicas' gradients (the all-reduce). We want the mean.
            loss = tf.reduce_mean(losses) / world_size
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    @tf.function
    def all_replicas_step(batch):  # each replica trains on its part of the global batch
        return strategy.reduce("SUM", strategy.run(train_step, batch), axis=None)

    parameters = model.count_params()
    sizes = {"parameters": parameters, "gradient_bytes": 4 * parameters}
    local_batch_size = args.global_batch_size // world_size
    emit("start", world_size=world_size, local_batch_size=local_batch_size, **sizes, **vars(args))
    per_epoch = len(labels) // args.global_batch_size
    last = min(args.epochs * per_epoch, args.max_steps or sys.maxsize)
    step = int(optimizer.iterations.numpy())
    while step < last:
        losses = []
        dataset = batches(args, images, labels, step).take(last - step)
        for batch in strategy.experimental_distribute_dataset(dataset):
            loss = all_replicas_step(batch)
            step += 1
            losses.append(loss)
            if len(losses) == 1:
                clock = time.perf_counter()  # an epoch's first step is left out of its speed
            if args.log_every and step % args.log_every == 0:
                emit("step", step=step, train_loss=float(loss))
            if manager and step % (args.checkpoint_every or per_epoch) == 0:
                manager.save(step)
        record = {"train_loss": float(np.mean(losses))}  # waits for the last step
        if timed := len(losses) - 1:
            record["step_seconds"] = (time.perf_counter() - clock) / timed
            record["samples_per_second"] = args.global_batch_size / record["step_seconds"]
        accuracy = evaluate(model, *test)
        emit("epoch", epoch=-(-step // per_epoch), step=step, test_accuracy=accuracy, **record)

    for rank in range(world_size):  # every device's copies, to see that they are equal
        local = strategy.experimental_local_results
        copies = [local(one)[rank] for one in model.trainable_variables]
        weights = b"".join(copy.numpy().tobytes() for copy in copies)
        emit("weights", rank=rank, weights_sha256=hashlib.sha256(weights).hexdigest())
    save(model, args.save_to)


if __name__ == "__main__":
    main()
