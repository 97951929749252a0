"""Train an image classifier with TensorFlow's ParameterServerStrategy, asynchronously.

    python local_tf_cluster.py --workers 2 --ps 1 train_tf_ps.py --training DIR --test DIR

SageMaker: TensorFlow(entry_point="train_tf_ps.py", instance_count=3,
    distribution={"parameter_server": {"enabled": True}}, ...): the first host coordinates, the
    others train, and the launcher starts a parameter server on each.

A step is an update by each worker, from its part of a global batch. No two runs are the same.
"""

import argparse
import hashlib
import json
import os
import random
import socket
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_NUM_INTEROP_THREADS", "16")  # waiting for a host takes one
os.environ["TF_CONFIG"] = os.environ["TF_CONFIG"].replace('"master"', '"chief"')  # SageMaker's
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
    parser.add_argument("--shard-by", choices=["example", "class"], default="example")
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
    key = labels if args.shard_by == "class" else np.arange(len(labels))
    part = np.flatnonzero(key % len(addresses["worker"]) == index)
    shard = {"examples": len(part), "classes": np.unique(labels[part]).tolist()}
    emit("shard", worker=index, **shard, cluster=addresses)
    folder = tempfile.TemporaryDirectory()  # deleted at the end
    os.chdir(folder.name)  # so that "images" names each worker's own file
    images[part].tofile("images")
    labels[part].astype(np.int64).tofile("labels")
    tf.distribute.Server(cluster.cluster_spec(), "worker", index, "grpc")
    host, port = addresses["chief"][0].split(":")
    for serving in (False, True):  # until the coordinator is there; then until it has ended
        while listens(host, int(port)) == serving:
            time.sleep(1)


def batches(size, image_shape, seed):
    """Return batches without end from the files of whichever worker runs this."""
    images = tf.io.decode_raw(tf.io.read_file("images"), tf.uint8)
    labels = tf.io.decode_raw(tf.io.read_file("labels"), tf.int64)
    dataset = tf.data.Dataset.from_tensor_slices((tf.reshape(images, (-1, *image_shape)), labels))
    return dataset.shuffle(60_000, seed=seed).repeat().batch(size)


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
    here = tf.saved_model.SaveOptions(experimental_io_device="/job:chief")  # not the servers' disks
    tf.saved_model.save(model, f"{folder}/1", signatures={"serving_default": serve}, options=here)


def main():
    """Train, evaluate after each epoch, save the model."""
    args = parse_args()
    cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver(rpc_layer="grpc")
    rank, world_size = 0, len(cluster.cluster_spec().as_dict()["worker"])
    report = emit if rank == 0 else lambda *_, **__: None
    tf.config.threading.set_intra_op_parallelism_threads(args.threads_per_rank)
    random.seed(args.seed)  # Keras 2 draws from it; its set_random_seed fails on Python 3.12
    tf.random.set_seed(args.seed)
    (images, labels), test = load(args.training), load(args.test)
    if len(labels) < args.global_batch_size or args.global_batch_size % world_size:
        sys.exit(f"error: --global-batch-size: no multiple of {world_size} up to {len(labels)}")
    if cluster.task_type == "worker":
        return serve(args, images, labels, cluster)
    strategy = tf.distribute.ParameterServerStrategy(cluster)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():  # variables made here live on the parameter servers
        model = build_model(images.shape[1:], args.hidden_units)
        # N updates with 1/N of the batch each move the model as far as one with the whole batch.
        optimizer = tf.keras.optimizers.SGD(args.learning_rate / world_size, momentum=0.9)
        optimizer.build(model.trainable_variables)
    for weight in model.variables:
        size, place = 4 * weight.shape.num_elements(), tf.DeviceSpec.from_string(weight.device)
        emit("variable", name=weight.name, bytes=size, ps=place.task, device=place.device_type)

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
    report("start", world_size=world_size, local_batch_size=local_batch_size, **sizes, **vars(args))
    per_epoch = len(labels) // args.global_batch_size
    step, last = 0, min(args.epochs * per_epoch, args.max_steps or sys.maxsize)
    per_worker = coordinator.create_per_worker_dataset
    iterator = iter(per_worker(lambda: batches(local_batch_size, images.shape[1:], args.seed)))
    while step < last:
        epoch, losses = step // per_epoch, []
        count = min(per_epoch, last - step) * world_size
        updates = [coordinator.schedule(update, (iterator,)) for _ in range(count)]
        for i in range(0, count, world_size):
            loss = np.mean([result.fetch()[0] for result in updates[i : i + world_size]])
            step += 1
            losses.append(loss)
            if len(losses) == 1:
                clock = time.perf_counter()  # an epoch's first step is left out of its speed
            if args.log_every and step % args.log_every == 0:
                report("step", step=step, train_loss=float(loss))
        record = {"train_loss": float(np.mean(losses))}  # waits for the last step
        record["mean_staleness"] = np.mean([result.fetch()[1] for result in updates])
        if timed := len(losses) - 1:
            record["step_seconds"] = (time.perf_counter() - clock) / timed
            record["samples_per_second"] = args.global_batch_size / record["step_seconds"]
        accuracy = evaluate(model, *test)
        report("epoch", epoch=epoch + 1, step=step, test_accuracy=accuracy, **record)

    by_class = [[part[test[1] == label] for part in test] for label in range(10)]
    emit("classes", accuracy=[round(evaluate(model, *part), 4) for part in by_class])
    # Without batch norm's averages: they differ by rank.
    weights = b"".join(weight.numpy().tobytes() for weight in model.trainable_variables)
    emit("weights", rank=rank, weights_sha256=hashlib.sha256(weights).hexdigest())
    if rank == 0:
        save(model, args.save_to)


if __name__ == "__main__":
    main()
