"""Train an image classifier with Keras's model.fit on several ranks, with Horovod or SMDDP.

    mpirun -np 2 python train_tf_fit.py --training DIR --test DIR

SageMaker: TensorFlow(entry_point="train_tf_fit.py", instance_count=2, ...) and one of
    distribution={"mpi": {"enabled": True}}, hyperparameters={"library": "horovod"}
    distribution={"smdistributed": {"dataparallel": {"enabled": True}}}, ... {"library": "smddp"}

`fit` can start at an epoch, but not inside one: so checkpoints are written at the end of an epoch.
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
    """Read the flags. SageMaker passes hyperparameters as flags, and its folders as SM_*."""
    env = os.environ.get
    kept = "/opt/ml/checkpoints" if os.path.isdir("/opt/ml/checkpoints") else ""
    defaults = {
        "epochs": 20,
        "library": "horovod",  # or smddp
        "warmup_steps": 0,  # the learning rate rises to its value over so many steps
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
        "model_dir": "",  # not used, but SageMaker's SDK always sends it
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    for name, default in defaults.items():
        choices = ["horovod", "smddp"] if name == "library" else None
        spellings = {f"--{name}", f"--{name.replace('_', '-')}"}
        parser.add_argument(*spellings, type=type(default), default=default, choices=choices)
    args = parser.parse_args()
    for name, value in vars(args).items():
        may_be_0 = name not in ("epochs", "global_batch_size", "learning_rate", "hidden_units")
        if not (isinstance(value, str) or value > 0 or (value == 0 and may_be_0)):
            parser.error(f"--{name} {value}: expected a number above 0")
    return args


def emit(event, rank, **record):
    """Print one JSON line with one write, so that the lines of several ranks stay whole."""
    if rank == 0 or event == "weights":
        print(json.dumps({"event": event, "rank": rank, **record}) + "\n", end="", flush=True)


def load(folder):
    """Return a channel's images, uint8 (n, height, width, channels), and labels, int64 (n,).

    It holds part-*.npz, or *.tfrecord: examples of an `image`, its bytes, and a `label`.
    """
    try:
        if records := sorted(map(str, Path(folder).glob("*.tfrecord"))):
            kinds = {"image": tf.string, "label": tf.int64}
            form = {name: tf.io.FixedLenFeature([], kind) for name, kind in kinds.items()}
            dataset = tf.data.TFRecordDataset(records).batch(100_000)
            parts = list(dataset.map(lambda part: tf.io.parse_example(part, form)))
            pixels, labels = (np.concatenate([p[name] for p in parts]) for name in kinds)
            shape = {64: (8, 8, 1), 784: (28, 28, 1), 3072: (32, 32, 3)}[len(pixels[0])]
            images = np.frombuffer(b"".join(pixels), np.uint8).reshape(-1, *shape)
        else:
            parts = [np.load(path) for path in sorted(Path(folder).glob("part-*.npz"))]
            images, labels = (
                np.concatenate([p[name] for p in parts]) for name in ("images", "labels")
            )
        assert images.dtype == np.uint8 and images.ndim == 4 and min(images.shape[1:3]) >= 4
        assert labels.shape == images.shape[:1] and 0 <= labels.min() <= labels.max() <= 9
    except Exception as error:  # no files, damaged files, or files of something else
        sys.exit(
            f"error: {folder} can't be used ({error!r}). Expected: part-*.npz with images, uint8 "
            "(n, height, width, channels), 4 x 4 pixels or more, and labels (n,), 0 to 9; or "
            "*.tfrecord of data_prep. Run `python -m data_prep digits`, or point --training and "
            "--test at such folders"
        )
    return images, labels


def batches(args, images, labels, step, rank, world_size):
    """Return this rank's batches from `step` on, without end; each epoch has its own order."""
    size = args.global_batch_size
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(len(labels), seed=args.seed).take(len(labels) // size * size)
    # All ranks shuffle alike; of each global batch rank r takes examples r, r + world_size, ...
    return dataset.shard(world_size, rank).batch(size // world_size).repeat().skip(step)


def set_up(args, local_rank=0, ranks_here=1):
    """Give this process its part of the machine's cores and GPUs, and set the seed."""
    threads = args.threads_per_rank or max(1, os.cpu_count() // ranks_here)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[local_rank % len(gpus) :: ranks_here], "GPU")
    tf.keras.utils.set_random_seed(args.seed)


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
    state = tf.train.Checkpoint(model=model, optimizer=optimizer)  # also the momentum and the step
    manager = tf.train.CheckpointManager(state, args.checkpoint_dir, max_to_keep=2)
    if newest := manager.latest_checkpoint:
        state.restore(newest).assert_consumed()
        emit("resumed", 0, step=int(optimizer.iterations.numpy()), file=newest)
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
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


class Report(tf.keras.callbacks.Callback):
    """Warm up the learning rate, print losses, accuracy and speed, write checkpoints."""

    def __init__(self, args, step, test, mean_over_ranks, rank, manager):
        super().__init__()
        self.args, self.step, self.test = args, step, test
        self.mean, self.rank, self.manager = mean_over_ranks, rank, manager

    def on_epoch_begin(self, epoch, logs=None):
        """Called before each epoch, counted from 0."""
        self.losses = []

    def on_train_batch_begin(self, batch, logs=None):
        """Called before each step. Fresh weights can't take a large batch's learning rate yet."""
        if self.step < self.args.warmup_steps:
            rate = self.args.learning_rate * (self.step + 1) / self.args.warmup_steps
            self.model.optimizer.learning_rate.assign(rate)

    def on_train_batch_end(self, batch, logs):
        """Called after each step."""
        self.step += 1
        self.losses.append(logs["loss"])
        if len(self.losses) == 1:
            self.clock = time.perf_counter()  # an epoch's first step is left out of its speed
        if self.args.log_every and self.step % self.args.log_every == 0:
            loss = float(self.mean(tf.constant(logs["loss"])))
            emit("step", self.rank, step=self.step, train_loss=loss)
        self.model.stop_training = self.step == self.args.max_steps

    def on_epoch_end(self, epoch, logs=None):
        """Called after each epoch, counted from 0."""
        record = {"epoch": epoch + 1, "step": self.step}
        record["train_loss"] = float(self.mean(tf.constant(np.mean(self.losses), tf.float32)))
        if timed := len(self.losses) - 1:
            record["step_seconds"] = (time.perf_counter() - self.clock) / timed
            record["samples_per_second"] = self.args.global_batch_size / record["step_seconds"]
        emit("epoch", self.rank, test_accuracy=evaluate(self.model, *self.test), **record)
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
    (images, labels), test = load(args.training), load(args.test)
    if len(labels) < args.global_batch_size or args.global_batch_size % world_size:
        sys.exit(
            f"error: --global-batch-size {args.global_batch_size}: expected a multiple of "
            f"{world_size} ranks, and at most the {len(labels)} examples"
        )
    built = build_model(args, images.shape[1:])
    optimizer = tf.keras.optimizers.SGD(args.learning_rate, momentum=0.9)
    optimizer.build(built.trainable_variables)  # so that there is momentum to read or to copy
    # Rank 0 alone reads and writes checkpoints; all ranks start from its variables.
    manager = resume(args, built, optimizer) if rank == 0 else None
    library.broadcast_variables([*built.variables, *optimizer.variables()], root_rank=0)
    model = DataParallelModel(built.inputs, built.outputs)  # of the same layers
    model.library = library
    model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    parameters = model.count_params()
    sizes = {"parameters": parameters, "gradient_bytes": 4 * parameters}
    local_batch_size = args.global_batch_size // world_size
    sizes |= {"world_size": world_size, "local_batch_size": local_batch_size}
    emit("start", rank, **sizes, **vars(args))
    per_epoch = len(labels) // args.global_batch_size
    step = int(optimizer.iterations.numpy())
    # SMDDP's allreduce is for gradients alone; other numbers go "out of band".
    mean_over_ranks = library.oob_allreduce if args.library == "smddp" else library.allreduce
    if not args.max_steps or step < args.max_steps:
        model.fit(
            batches(args, images, labels, step, rank, world_size),
            steps_per_epoch=per_epoch,
            initial_epoch=step // per_epoch,
            epochs=args.epochs,
            callbacks=[Report(args, step, test, mean_over_ranks, rank, manager)],
            verbose=0,
        )

    weights = b"".join(weight.tobytes() for weight in model.get_weights())
    emit("weights", rank, weights_sha256=hashlib.sha256(weights).hexdigest())
    if rank == 0:
        save(built, args.save_to)


if __name__ == "__main__":
    main()
