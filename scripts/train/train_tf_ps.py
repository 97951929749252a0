"""Train an image classifier with TensorFlow's ParameterServerStrategy, asynchronously.

    python local_tf_cluster.py --workers 2 --ps 1 train_tf_ps.py --training DIR --test DIR

SageMaker: TensorFlow(entry_point="train_tf_ps.py", instance_count=3,
    distribution={"parameter_server": {"enabled": True}}, ...): the first host coordinates, the
    others train, and the launcher starts a parameter server on each.

A step is an update by each worker, from its part of a global batch. No two runs are the same.
"""

import argparse
import functools
import hashlib
import json
import os
import shutil
import socket
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # Keras 2: from TensorFlow 2.16 on, tf-keras
import tensorflow as tf

# SageMaker gives the coordinator the name that it had in TensorFlow 1.
os.environ["TF_CONFIG"] = os.environ.get("TF_CONFIG", "{}").replace('"master"', '"chief"')
# The variables are on other hosts; checkpoints go to the coordinator's disk.
HERE = tf.train.CheckpointOptions(experimental_io_device="/job:chief")


def fail(message):
    """End with one sentence."""
    sys.exit(f"error: {message}")


def parse_args():
    """Read the flags. SageMaker passes hyperparameters as flags, and its folders as SM_*."""
    env = os.environ.get
    kept = "/opt/ml/checkpoints" if os.path.isdir("/opt/ml/checkpoints") else ""
    defaults = {
        "epochs": 20,
        "shard_by": "example",  # or class: a worker then sees only some of the ten digits
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


def listens(host, port):
    """Return whether a process listens there. A host that has gone doesn't even refuse."""
    try:
        socket.create_connection((host, port), timeout=2).close()
    except OSError:
        return False
    return True


def serve(args, images, labels, cluster):
    """Be a worker: write this worker's part to files, then run what the coordinator sends."""
    addresses, index = cluster.cluster_spec().as_dict(), cluster.task_id
    owner = labels if args.shard_by == "class" else np.arange(len(labels))
    mine = np.flatnonzero(owner % len(addresses["worker"]) == index)
    seen = {"examples": len(mine), "classes": np.unique(labels[mine]).tolist()}
    emit("shard", worker=index, **seen, cluster=addresses)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # so that "images" names each worker's own file
        images[mine].tofile("images")
        labels[mine].astype(np.int64).tofile("labels")
        # Waiting for another host takes a thread: with a thread per core, one core could hang.
        options = tf.compat.v1.ConfigProto(
            inter_op_parallelism_threads=len(addresses["worker"]) + 2
        )
        options.gpu_options.allow_growth = True  # a server has its own settings, not `set_up`'s
        tf.distribute.Server(cluster.cluster_spec(), "worker", index, "grpc", options)
        host, port = addresses["chief"][0].split(":")
        for serving in (False, True):  # until the coordinator is there; then until it has ended
            while listens(host, int(port)) == serving:
                time.sleep(1)


def batches(size, image_shape, seed):
    """Return batches without end from the files of whichever worker runs this."""
    record_bytes = {"images": int(np.prod(image_shape)), "labels": 8}
    files = [tf.data.FixedLengthRecordDataset(*one) for one in record_bytes.items()]
    dataset = tf.data.Dataset.zip(tuple(files)).shuffle(60_000, seed=seed).repeat().batch(size)
    return dataset.map(
        lambda images, labels: (
            tf.reshape(tf.io.decode_raw(images, tf.uint8), (-1, *image_shape)),
            tf.reshape(tf.io.decode_raw(labels, tf.int64), [-1]),
        )
    )


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
            state.restore(newest, HERE).assert_consumed()
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
    cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver(rpc_layer="grpc")
    rank, world_size = 0, len(cluster.cluster_spec().as_dict().get("worker", []))
    if world_size == 0:
        sys.exit(
            "error: no worker in TF_CONFIG. Start with local_tf_cluster.py --ps 1, or on "
            "SageMaker with 2 or more instances"
        )
    tf.config.threading.set_inter_op_parallelism_threads(world_size + 2)
    set_up(args)
    (images, labels), test = load(args.training), load(args.test)
    if len(labels) < args.global_batch_size or args.global_batch_size % world_size:
        fail(
            f"--global-batch-size {args.global_batch_size}: expected a multiple of "
            f"{world_size} ranks, and at most the {len(labels)} examples"
        )
    if cluster.task_type == "worker":
        return serve(args, images, labels, cluster)
    strategy = tf.distribute.ParameterServerStrategy(cluster)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    local_model = build_model(args, images.shape[1:])  # a copy, to evaluate and save
    with strategy.scope():  # variables made here live on the parameter servers
        model = build_model(args, images.shape[1:])
        # N updates with 1/N of the batch each move the model as far as one with the whole batch.
        optimizer = tf.keras.optimizers.SGD(args.learning_rate / world_size, momentum=0.9)
        optimizer.build(model.trainable_variables)
    for weight in model.variables:
        size, at = 4 * weight.shape.num_elements(), tf.DeviceSpec.from_string(weight.device)
        emit("variable", name=weight.name, bytes=size, ps=at.task, device=at.device_type)
    manager = resume(args, model, optimizer)

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            logits = model(tf.cast(images, tf.float32), training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    @tf.function
    def update(iterator):  # runs on whichever worker is free, and waits for no other
        before = tf.identity(optimizer.iterations)
        with tf.control_dependencies([before]):  # only then are the weights read
            loss = strategy.run(train_step, args=next(iterator))
        return loss, optimizer.iterations - before - 1  # staleness: others' updates meanwhile

    parameters = model.count_params()
    sizes = {"parameters": parameters, "gradient_bytes": 4 * parameters}
    local_batch_size = args.global_batch_size // world_size
    emit("start", world_size=world_size, local_batch_size=local_batch_size, **sizes, **vars(args))
    per_epoch = len(labels) // args.global_batch_size
    last = min(args.epochs * per_epoch, args.max_steps or sys.maxsize)
    step = int(optimizer.iterations.numpy()) // world_size
    make = functools.partial(batches, local_batch_size, images.shape[1:], args.seed + step)
    iterator = iter(coordinator.create_per_worker_dataset(make))
    while step < last:
        losses, stale = [], []
        todo = min(per_epoch - step % per_epoch, last - step)
        updates = [coordinator.schedule(update, (iterator,)) for _ in range(todo * world_size)]
        for i in range(0, len(updates), world_size):
            results = [one.fetch() for one in updates[i : i + world_size]]
            loss = np.mean([loss for loss, _ in results])
            stale += [staleness for _, staleness in results]
            step += 1
            losses.append(loss)
            if len(losses) == 1:
                clock = time.perf_counter()  # an epoch's first step is left out of its speed
            if args.log_every and step % args.log_every == 0:
                emit("step", step=step, train_loss=float(loss))
            if manager and step % (args.checkpoint_every or per_epoch) == 0:
                manager.save(step, options=HERE)
        record = {"train_loss": float(np.mean(losses)), "mean_staleness": float(np.mean(stale))}
        if timed := len(losses) - 1:
            record["step_seconds"] = (time.perf_counter() - clock) / timed
            record["samples_per_second"] = args.global_batch_size / record["step_seconds"]
        local_model.set_weights(model.get_weights())
        accuracy = evaluate(local_model, *test)
        emit("epoch", epoch=-(-step // per_epoch), step=step, test_accuracy=accuracy, **record)

    local_model.set_weights(model.get_weights())
    of_class = [[part[test[1] == label] for part in test] for label in range(10)]
    emit("classes", accuracy=[round(evaluate(local_model, *part), 4) for part in of_class])
    weights = b"".join(weight.tobytes() for weight in local_model.get_weights())
    emit("weights", rank=rank, weights_sha256=hashlib.sha256(weights).hexdigest())
    save(local_model, args.save_to)


if __name__ == "__main__":
    main()
