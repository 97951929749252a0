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
import tempfile
import time
from pathlib import Path

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # Keras 2: from TensorFlow 2.16 on, tf-keras
import tensorflow as tf


def fail(message):
    """End with one sentence: rank 0's, for when it ends, the launcher ends the others."""
    rank = os.environ.get("OMPI_COMM_WORLD_RANK", "0")
    time.sleep(0 if rank == "0" else 10)  # then rank 0 has nothing to complain about
    sys.exit(f"error: {message}")


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
    parser.error = fail
    for name, default in defaults.items():
        choices = ["horovod", "smddp"] if name == "library" else None
        spellings = {f"--{name}", f"--{name.replace('_', '-')}"}
        parser.add_argument(*spellings, type=type(default), default=default, choices=choices)
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


def emit(event, rank, **record):
    """Print one JSON line with one write, so that the lines of several ranks stay whole."""
    if rank == 0 or event == "weights":
        print(json.dumps({"event": event, "rank": rank, **record}) + "\n", end="", flush=True)


def stream(files, rank, world_size):
    """Open TFRecord files, to be read record by record. Returns what `load` returns."""
    fields = {"image": tf.io.FixedLenFeature([], tf.string)}  # its bytes
    fields["label"] = tf.io.FixedLenFeature([], tf.int64)
    first = next(iter(tf.data.TFRecordDataset(files[0]))).numpy()
    pixels = tf.io.parse_single_example(first, fields)["image"].numpy()
    shape = {64: (8, 8, 1), 784: (28, 28, 1), 3072: (32, 32, 3)}[len(pixels)]
    size = 8 + 4 + len(first) + 4  # in the file a record has its length and two checksums, too
    counts = [os.path.getsize(path) / size for path in files]
    assert all(count >= 1 and count.is_integer() for count in counts), "records cut off"

    def parse(records):
        found = tf.io.parse_example(records, fields)
        images = tf.reshape(tf.io.decode_raw(found["image"], tf.uint8), (-1, *shape))
        return images, found["label"]

    if len(files) % world_size:  # every rank reads all files, and keeps its part of the records
        examples = tf.data.TFRecordDataset(files).shard(world_size, rank)
    else:  # every rank reads files of its own
        examples = tf.data.TFRecordDataset(files[rank::world_size])
    return examples, parse, int(sum(counts)), shape


def load(folder, rank=0, world_size=1):
    """Open a channel: part-*.npz, loaded whole, or *.tfrecord, streamed.

    Returns this rank's examples as a dataset; what makes images, uint8 (n, height, width,
    channels), and labels of a batch of them; how many all ranks have; an image's shape.
    """
    try:
        if files := sorted(map(str, Path(folder).glob("*.tfrecord"))):
            return stream(files, rank, world_size)
        parts = [np.load(path) for path in sorted(Path(folder).glob("part-*.npz"))]
        assert parts, "no part-*.npz and no *.tfrecord in it"
        images, labels = (np.concatenate([p[key] for p in parts]) for key in ("images", "labels"))
        assert images.dtype == np.uint8 and images.ndim == 4 and min(images.shape[1:3]) >= 4
        assert labels.shape == images.shape[:1] and 0 <= labels.min() <= labels.max() <= 9
    except Exception as error:  # no files, damaged files, or files of something else
        fail(
            f"{folder} can't be used ({str(error) or 'other arrays'}). Expected: part-*.npz with "
            "images, uint8 (n, height, width, channels), 4 x 4 pixels or more, and labels (n,), 0 "
            "to 9, or *.tfrecord of the workshop's data_prep. Point --training and --test at such "
            "folders; on SageMaker, name the channels so"
        )
    mine = tf.data.Dataset.from_tensor_slices((images[rank::world_size], labels[rank::world_size]))
    return mine, lambda images, labels: (images, labels), len(labels), images.shape[1:]


def batches(args, examples, parse, count, step, world_size):
    """Return this rank's batches from `step` on, without end: so all ranks have equally many."""
    size = args.global_batch_size // world_size
    per_epoch = count // args.global_batch_size * size
    # Mixes as many neighbours as the buffer holds, anew in each epoch.
    mixed = examples.shuffle(10_000, seed=args.seed).take(per_epoch).repeat()
    return mixed.batch(size).skip(step).map(parse).prefetch(tf.data.AUTOTUNE)


def set_up(args, local_rank=0, ranks_here=1):
    """Give this process its part of the machine's cores and GPUs, and set the seed."""
    threads = args.threads_per_rank or max(1, os.cpu_count() // ranks_here)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    if gpus := tf.config.list_physical_devices("GPU"):
        tf.config.set_visible_devices(gpus[local_rank % len(gpus) :: ranks_here], "GPU")
    for gpu in gpus:  # else the first process takes all of a GPU's memory
        tf.config.experimental.set_memory_growth(gpu, True)
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


def evaluate(model, batches):
    """Return the share of right answers, 0 to 1."""
    right = [
        np.argmax(model(tf.cast(images, tf.float32)), 1) == labels for images, labels in batches
    ]
    return float(np.mean(np.concatenate(right)))


def resume(args, model, optimizer):
    """Read the newest checkpoint, if there is one; return what writes them. None: no folder."""
    if not args.checkpoint_dir:
        return None
    state = tf.train.Checkpoint(model=model, optimizer=optimizer)  # momentum, step; no random state
    manager = tf.train.CheckpointManager(state, args.checkpoint_dir, max_to_keep=2)
    try:
        if newest := manager.latest_checkpoint:
            state.restore(newest).assert_consumed()
            emit("resumed", 0, step=int(optimizer.iterations.numpy()), file=newest)
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
        emit("epoch", self.rank, test_accuracy=evaluate(self.model, self.test), **record)
        if self.manager and self.step % self.params["steps"] == 0:
            self.manager.save(self.step)


def main():
    """Train, evaluate after each epoch, save the model."""
    args = parse_args()
    try_folders(args.save_to, args.checkpoint_dir)
    if args.library == "smddp":
        import smdistributed.dataparallel.tensorflow as library
    else:
        import horovod.tensorflow as library
    library.init()  # meet the other ranks
    rank, world_size = library.rank(), library.size()
    set_up(args, library.local_rank(), library.local_size())
    examples, parse, count, image_shape = load(args.training, rank, world_size)
    if count < args.global_batch_size or args.global_batch_size % world_size:
        fail(
            f"--global-batch-size {args.global_batch_size}: expected a multiple of "
            f"{world_size} ranks, and at most the {count} examples"
        )
    tests, parse_test, *_ = load(args.test)  # every rank tests everything
    built = build_model(args, image_shape)
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
    per_epoch = count // args.global_batch_size
    step = int(optimizer.iterations.numpy())
    test = tests.batch(256).map(parse_test)
    # SMDDP's allreduce is for gradients alone; other numbers go "out of band".
    mean_over_ranks = library.oob_allreduce if args.library == "smddp" else library.allreduce
    if not args.max_steps or step < args.max_steps:
        model.fit(
            batches(args, examples, parse, count, step, world_size),
            steps_per_epoch=per_epoch,
            initial_epoch=step // per_epoch,
            epochs=args.epochs,
            callbacks=[Report(args, step, test, mean_over_ranks, rank, manager)],
            verbose=0,
        )

    # Without batch norm's averages: they differ by rank.
    weights = b"".join(weight.numpy().tobytes() for weight in model.trainable_variables)
    emit("weights", rank, weights_sha256=hashlib.sha256(weights).hexdigest())
    if rank == 0:
        save(built, args.save_to)


if __name__ == "__main__":
    main()
