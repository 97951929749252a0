"""Train an image classifier with Keras's model.fit on several ranks, with Horovod or SMDDP.

    mpirun -np 2 python train_tf_fit.py --training DIR --test DIR

SageMaker: TensorFlow(entry_point="train_tf_fit.py", instance_count=2, ...) and one of
    distribution={"mpi": {"enabled": True}}, hyperparameters={"library": "horovod"}
    distribution={"smdistributed": {"dataparallel": {"enabled": True}}}, ... {"library": "smddp"}
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
    parser.add_argument("--library", choices=["horovod", "smddp"], default="horovod")
    parser.add_argument("--warmup-steps", type=int, default=0, help="until the full learning rate")
    parser.add_argument("--threads-per-rank", type=int, default=1, help="CPU threads")
    parser.add_argument("--training", default=env("SM_CHANNEL_TRAINING", "data/digits/training"))
    parser.add_argument("--test", default=env("SM_CHANNEL_TEST", "data/digits/test"))
    parser.add_argument("--save-to", default=env("SM_MODEL_DIR", "model"))
    parser.add_argument("--model_dir", help="not used; SageMaker's TensorFlow estimator sends it")
    return parser.parse_args()


def emit(event, **record):
    """Print a JSON line with one write, so that the lines of several ranks stay whole."""
    print(json.dumps({"event": event, **record}) + "\n", end="", flush=True)


def stream(files, rank, world_size):
    """Open TFRecord files, to be read record by record. Returns what `load` returns."""
    fields = {"image": tf.io.FixedLenFeature([], tf.string)}  # its bytes
    fields["label"] = tf.io.FixedLenFeature([], tf.int64)
    first = next(iter(tf.data.TFRecordDataset(files[0]))).numpy()
    pixels = tf.io.parse_single_example(first, fields)["image"].numpy()
    shape = {64: (8, 8, 1), 784: (28, 28, 1), 3072: (32, 32, 3)}[len(pixels)]
    record_bytes = 8 + 4 + len(first) + 4  # in the file: its length and two checksums, too
    count = sum(os.path.getsize(path) for path in files) // record_bytes

    def parse(records):
        examples = tf.io.parse_example(records, fields)
        images = tf.reshape(tf.io.decode_raw(examples["image"], tf.uint8), (-1, *shape))
        return images, examples["label"]

    if len(files) % world_size:  # every rank reads all files, and keeps its part of the records
        return tf.data.TFRecordDataset(files).shard(world_size, rank), parse, count, shape
    return tf.data.TFRecordDataset(files[rank::world_size]), parse, count, shape  # its own files


def load(folder, rank=0, world_size=1):
    """Open a channel: part-*.npz, loaded whole, or *.tfrecord, streamed.

    Returns this rank's examples as a dataset; what makes images, uint8 (n, height, width,
    channels), and labels of a batch of them; how many all ranks have; an image's shape.
    """
    if files := sorted(map(str, Path(folder).glob("*.tfrecord"))):
        return stream(files, rank, world_size)
    parts = [np.load(path) for path in sorted(Path(folder).glob("part-*.npz"))]
    assert parts, f"no part-*.npz in {folder}: `python -m data_prep digits` writes them"
    images, labels = (np.concatenate([p[key] for p in parts]) for key in ("images", "labels"))
    part = tf.data.Dataset.from_tensor_slices((images[rank::world_size], labels[rank::world_size]))
    return part, lambda images, labels: (images, labels), len(labels), images.shape[1:]


def batches(args, examples, parse, count, world_size):
    """Return this rank's batches, without end: so all ranks have equally many."""
    size = args.global_batch_size // world_size
    per_epoch = count // args.global_batch_size * size
    # Mixes as many neighbours as the buffer holds, anew in each epoch.
    mixed = examples.shuffle(10_000, seed=args.seed).take(per_epoch).repeat()
    return mixed.batch(size).map(parse).prefetch(tf.data.AUTOTUNE)


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


def evaluate(model, batches):
    """Return the share of right answers, 0 to 1."""
    right = [np.argmax(model(tf.cast(x, tf.float32)), 1) == labels for x, labels in batches]
    return float(np.mean(np.concatenate(right)))


def save(model, folder):
    """Write a SavedModel to folder/1, as a server wants it: float32 images to probabilities."""
    spec = tf.TensorSpec(model.input_shape, tf.float32, name="images")
    serve = tf.function(lambda images: {"probabilities": tf.nn.softmax(model(images))}, [spec])
    tf.saved_model.save(model, f"{folder}/1", signatures={"serving_default": serve})


class DataParallelModel(tf.keras.Model):
    """A model whose `fit` averages the gradients of all ranks in every step."""

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
    """Warm up the learning rate; print losses, accuracy and speed."""

    def __init__(self, args, report, all_reduce_mean, test):
        super().__init__()
        self.args, self.report, self.test, self.step = args, report, test, 0
        self.mean = lambda value: float(all_reduce_mean(tf.constant(value, tf.float32)))

    def on_epoch_begin(self, epoch, logs=None):
        self.losses = []

    def on_train_batch_begin(self, batch, logs=None):
        """Fresh weights can't take a large batch's learning rate yet."""
        if self.step < self.args.warmup_steps:
            rate = self.args.learning_rate * (self.step + 1) / self.args.warmup_steps
            self.model.optimizer.learning_rate.assign(rate)

    def on_train_batch_end(self, batch, logs):
        self.step += 1
        self.losses.append(logs["loss"])
        if len(self.losses) == 1:
            self.clock = time.perf_counter()  # an epoch's first step is left out of its speed
        if self.args.log_every and self.step % self.args.log_every == 0:
            self.report("step", step=self.step, train_loss=self.mean(logs["loss"]))
        self.model.stop_training = self.step == self.args.max_steps

    def on_epoch_end(self, epoch, logs=None):
        record = {"train_loss": self.mean(np.mean(self.losses))}
        if timed := len(self.losses) - 1:
            record["step_seconds"] = (time.perf_counter() - self.clock) / timed
            record["samples_per_second"] = self.args.global_batch_size / record["step_seconds"]
        accuracy = evaluate(self.model, self.test)
        self.report("epoch", epoch=epoch + 1, step=self.step, test_accuracy=accuracy, **record)


def main():
    """Train, evaluate after each epoch, save the model."""
    args = parse_args()
    if args.library == "smddp":
        import smdistributed.dataparallel.tensorflow as library
    else:
        import horovod.tensorflow as library
    library.init()  # meet the other ranks
    rank, world_size = library.rank(), library.size()
    gpus = tf.config.list_physical_devices("GPU")[library.local_rank() :][:1]  # one of its own
    tf.config.set_visible_devices(gpus, "GPU")
    for gpu in gpus:  # else TensorFlow takes all of its memory
        tf.config.experimental.set_memory_growth(gpu, True)
    report = emit if rank == 0 else lambda *_, **__: None
    tf.config.threading.set_intra_op_parallelism_threads(args.threads_per_rank)
    random.seed(args.seed)  # Keras 2 draws from it; its set_random_seed fails on Python 3.12
    tf.random.set_seed(args.seed)
    examples, parse, count, image_shape = load(args.training, rank, world_size)
    if count < args.global_batch_size or args.global_batch_size % world_size:
        sys.exit(f"error: --global-batch-size: no multiple of {world_size} up to {count}")
    test_examples, parse_test, *_ = load(args.test)  # every rank tests everything
    test = test_examples.batch(256).map(parse_test)
    layers = build_model(image_shape, args.hidden_units)
    optimizer = tf.keras.optimizers.SGD(args.learning_rate, momentum=0.9)
    optimizer.build(layers.trainable_variables)  # the momentum, so that it can be copied
    library.broadcast_variables([*layers.variables, *optimizer.variables()], root_rank=0)
    model = DataParallelModel(layers.inputs, layers.outputs)  # of the same layers
    model.library = library
    model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    parameters = model.count_params()
    sizes = {"parameters": parameters, "gradient_bytes": 4 * parameters}
    local_batch_size = args.global_batch_size // world_size
    report("start", world_size=world_size, local_batch_size=local_batch_size, **sizes, **vars(args))
    # SMDDP's allreduce is for gradients alone; other numbers go "out of band".
    all_reduce_mean = library.oob_allreduce if args.library == "smddp" else library.allreduce
    model.fit(
        batches(args, examples, parse, count, world_size),
        steps_per_epoch=count // args.global_batch_size,
        epochs=args.epochs,
        callbacks=[Report(args, report, all_reduce_mean, test)],
        verbose=0,
    )

    # Without batch norm's averages: they differ by rank.
    weights = b"".join(weight.numpy().tobytes() for weight in model.trainable_variables)
    emit("weights", rank=rank, weights_sha256=hashlib.sha256(weights).hexdigest())
    if rank == 0:
        save(layers, args.save_to)


if __name__ == "__main__":
    main()
