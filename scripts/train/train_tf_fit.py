"""Train an image classifier with Keras's model.fit on several ranks, with Horovod or SMDDP.

    mpirun -np 2 python train_tf_fit.py --training DIR --test DIR

SageMaker: TensorFlow(entry_point="train_tf_fit.py", instance_count=2, ...) and one of
    distribution={"mpi": {"enabled": True}}, hyperparameters={"library": "horovod"}
    distribution={"smdistributed": {"dataparallel": {"enabled": True}}}, ... {"library": "smddp"}

`fit` can begin at an epoch, not inside one: checkpoints are written at the ends of epochs alone.
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
        "library": "horovod",  # or smddp
        "warmup-steps": 0,  # the learning rate rises to its value over so many steps
        "model-dir": "",  # not used: the SageMaker SDK always sends it
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    for name, default in defaults.items():
        spellings = {f"--{name}": 0, f"--{name.replace('-', '_')}": 0}
        parser.add_argument(*spellings, type=type(default), default=default)
    args = parser.parse_args()
    if min(args.epochs, args.global_batch_size, args.hidden_units) < 1 or args.learning_rate <= 0:
        parser.error("epochs, global-batch-size, hidden-units and learning-rate: more than 0")
    if args.library not in ("horovod", "smddp"):
        parser.error(f"--library {args.library}: horovod or smddp expected")
    if args.model not in ("small", "deep"):
        parser.error(f"--model {args.model}: small or deep expected")
    return args


def emit(**record):
    """Print one JSON line, in one write: the lines of several ranks don't mix."""
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


def load(folder):
    """Return a channel's images, uint8 (n, h, w, c) 0 to 255, and labels, int64 (n,) 0 to 9.

    It holds part-*.npz, or *.tfrecord, whose records have an `image`, its bytes, and a `label`.
    """
    files = [str(path) for path in sorted(Path(folder).glob("*.tfrecord"))]
    if files:
        kinds = {"image": tf.string, "label": tf.int64}
        form = {name: tf.io.FixedLenFeature([], kind) for name, kind in kinds.items()}
        records = tf.data.TFRecordDataset(files).batch(1000)
        records = list(records.map(lambda r: tf.io.parse_example(r, form)).as_numpy_iterator())
        pixels = b"".join(image for part in records for image in part["image"])
        labels = np.concatenate([part["label"] for part in records])
        shape = {64: (8, 8, 1), 784: (28, 28, 1), 3072: (32, 32, 3)}[len(pixels) // len(labels)]
        return np.frombuffer(pixels, np.uint8).reshape(-1, *shape), labels
    parts = [np.load(path) for path in sorted(Path(folder).glob("part-*.npz"))]
    if not parts:
        raise SystemExit(
            f"error: no part-*.npz or *.tfrecord in {folder}. Make some with `python -m data_prep "
            "digits`, or point --training and --test at such folders"
        )
    return [np.concatenate([part[name] for part in parts]) for name in ("images", "labels")]


def batches(args, images, labels, step, rank, world_size):
    """Return this rank's batches from `step` (counted from 0) on, without end.

    Whole global batches only. Each pass has its own order; a resumed run draws the same ones.
    """
    size = args.global_batch_size
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(len(labels), seed=args.seed).take(len(labels) // size * size)
    # All ranks shuffle alike; of each global batch rank r takes examples r, r + ranks, ...
    dataset = dataset.shard(world_size, rank).batch(size // world_size)
    return dataset.repeat().skip(step)


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


class DataParallelModel(tf.keras.Model):
    """A model whose `fit` averages the gradients of all ranks in every step."""

    library = None

    def train_step(self, batch):
        """Do what `fit` does with a batch, with the all-reduce between gradients and update."""
        images, labels = batch
        with tf.GradientTape() as tape:
            logits = self(tf.cast(images, tf.float32), training=True)
            loss = self.compute_loss(images, labels, logits)
        tape = self.library.DistributedGradientTape(tape)  # the all-reduce
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))  # noqa: B905
        return {"loss": loss}


class WarmUp(tf.keras.callbacks.Callback):
    """Raise the learning rate to its value: fresh weights don't bear that of a large batch."""

    def __init__(self, rate, steps):
        super().__init__()
        self.rate, self.steps = rate, steps

    def on_train_batch_begin(self, batch, logs=None):
        """Called before each step."""
        step = int(self.model.optimizer.iterations.numpy()) + 1
        if step <= self.steps:
            self.model.optimizer.learning_rate.assign(self.rate * step / self.steps)


class Report(tf.keras.callbacks.Callback):
    """Print losses, accuracy and speed; write a checkpoint at each epoch's end."""

    def __init__(self, args, step, test, mean_over_ranks, rank, manager):
        super().__init__()
        self.args, self.step, self.first, self.test = args, step, step, test
        self.mean, self.rank, self.manager = mean_over_ranks, rank, manager

    def on_epoch_begin(self, epoch, logs=None):
        """Called before each epoch, counted from 0."""
        self.losses, self.clock, self.timed_from = [], time.perf_counter(), self.step

    def on_train_batch_end(self, batch, logs):
        """Called after each step."""
        self.step += 1
        self.losses.append(logs["loss"])
        if self.args.log_every and self.step % self.args.log_every == 0:
            loss = float(self.mean(tf.constant(logs["loss"])))
            if self.rank == 0:
                emit(event="step", step=self.step, train_loss=round(loss, 6))
        if self.step == self.first + 1:  # this one traced the function: not timed
            self.clock, self.timed_from = time.perf_counter(), self.step
        if self.step == self.args.max_steps:
            self.model.stop_training = True

    def on_epoch_end(self, epoch, logs=None):
        """Called after each epoch, counted from 0."""
        timed = self.step - self.timed_from
        seconds = (time.perf_counter() - self.clock) / timed if timed else None
        train_loss = float(self.mean(tf.constant(np.mean(self.losses), tf.float32)))
        if self.rank:
            return
        emit(
            event="epoch",
            epoch=epoch + 1,
            step=self.step,
            train_loss=round(train_loss, 6),
            test_accuracy=round(evaluate(self.model, *self.test), 6),
            samples_per_second=seconds and round(self.args.global_batch_size / seconds, 1),
            step_seconds=seconds and round(seconds, 6),
        )
        if self.manager and self.step % self.params["steps"] == 0:
            self.manager.save(self.step)


def main():
    """Train, evaluate after each epoch, save the model."""
    args = parse_args()
    if args.library == "smddp":
        import smdistributed.dataparallel.tensorflow as library
    else:
        import horovod.tensorflow as library
    library.init()  # meet the other ranks
    rank, world_size = library.rank(), library.size()
    set_up(args, library.local_rank(), library.local_size())
    if args.global_batch_size % world_size:
        raise SystemExit(f"error: --global-batch-size has to be a multiple of {world_size} ranks")
    images, labels = load(args.training)
    test = load(args.test)
    per_epoch = len(labels) // args.global_batch_size
    if not per_epoch:
        raise SystemExit(f"error: {len(labels)} examples: lower --global-batch-size to that")

    built = build_model(args, images.shape[1:])
    optimizer = tf.keras.optimizers.SGD(args.learning_rate, momentum=0.9)
    optimizer.build(built.trainable_variables)  # so that there is momentum to read or to copy
    # Rank 0 alone reads and writes checkpoints; all start from its variables.
    manager = resume(args, built, optimizer) if rank == 0 else None
    library.broadcast_variables([*built.variables, *optimizer.variables], root_rank=0)
    model = DataParallelModel(built.inputs, built.outputs)  # of the same layers
    model.library = library
    model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    if rank == 0:
        emit(
            event="start",
            world_size=world_size,
            global_batch_size=args.global_batch_size,
            local_batch_size=args.global_batch_size // world_size,
            learning_rate=args.learning_rate,
            parameters=model.count_params(),
            gradient_bytes=4 * model.count_params(),
        )
    step = int(optimizer.iterations.numpy())
    # SMDDP's allreduce is for gradients alone; other numbers go "out of band".
    mean_over_ranks = library.oob_allreduce if args.library == "smddp" else library.allreduce
    report = Report(args, step, test, mean_over_ranks, rank, manager)
    done = args.max_steps and step >= args.max_steps
    model.fit(
        batches(args, images, labels, step, rank, world_size),
        steps_per_epoch=per_epoch,
        initial_epoch=args.epochs if done else step // per_epoch,
        epochs=args.epochs,
        callbacks=[WarmUp(args.learning_rate, args.warmup_steps), report],
        verbose=0,
    )

    weights = b"".join(weight.tobytes() for weight in model.get_weights())
    emit(event="weights", rank=rank, weights_sha256=hashlib.sha256(weights).hexdigest())
    if rank == 0:
        save(built, args.save_to)


if __name__ == "__main__":
    main()
