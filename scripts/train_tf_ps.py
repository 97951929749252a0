"""Train a small image classifier on several hosts with TensorFlow's ParameterServerStrategy.

    python scripts/common/launch_ps.py --workers 2 -- --epochs 5

starts everything on this machine; what follows `--` are arguments of this script. SageMaker:
entry_point="train_tf_ps.py", source_dir="scripts", instance_count=3,
distribution={"parameter_server": {"enabled": True}}.

The first host coordinates and the others are the workers: N instances train with N - 1. The
launcher runs this script on every host, and a parameter server beside it. A worker takes its part
of the training channel of its own host, so every host needs the whole channel (S3 data type
FullyReplicated). Without workers (one instance, or no TF_CONFIG) the script refuses.

An update takes global_batch_size / workers examples and doesn't wait for the other workers; a
step is as many updates as there are workers. Lines marked NEW are what train_tf.py doesn't have.

With --checkpoint-dir the coordinator keeps checkpoints, each when all updates before it are done.
A resumed run loses no step before its checkpoint. But which update meets which weights is
never the same twice: it ends with weights like those of an uninterrupted run, not the same ones.
"""

from functools import partial  # NEW:

from common.keras2 import tf  # first: whoever imports TensorFlow first chooses the Keras

# isort: split
from common import cluster_tf  # NEW:
from common.arguments import local_batch_size, parser_for  # NEW: local_batch_size
from common.checkpoint_tf import Checkpoints
from common.data import epochs_and_steps, load_channel
from common.errors import run_main
from common.model_tf import accuracy, build_model, build_optimizer, mean_loss, prepare, save_model
from common.report import Report, report_weights
from common.shard_file import own_shard, read_shard  # NEW:


def make_train_step(model, optimizer):
    """Return the function that trains on one batch, images and labels, and returns its loss."""

    @tf.function
    def train_step(batch_images, batch_labels):
        with tf.GradientTape() as tape:
            loss = mean_loss(model, batch_images, batch_labels)
        gradients = tape.gradient(loss, model.trainable_variables)
        # No strict= here: AutoGraph of TensorFlow 2.12 has its own zip, which doesn't know it.
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # noqa: B905
        return loss

    return train_step


def make_worker_step(strategy, train_step, optimizer):  # NEW:
    """Return the function that a worker runs: an update's loss and staleness."""  # NEW:

    @tf.function  # NEW:
    def worker_step(batches):  # NEW:
        before = tf.identity(optimizer.iterations)  # NEW: updates so far, of all workers
        with tf.control_dependencies([before]):  # NEW: only then read the weights
            loss = strategy.run(train_step, args=next(batches))  # NEW:
        return loss, optimizer.iterations - before - 1  # NEW: others' updates in the meantime

    return worker_step  # NEW:


def main() -> None:
    """Read the arguments, train, evaluate after each epoch, save the model."""
    parser = parser_for(__file__, __doc__)  # NEW:
    parser.add_argument("--shard-by", choices=["example", "class"], default="example")  # NEW:
    parser.add_argument("--cluster-timeout", type=int, default=300, help="seconds")  # NEW:
    args = parser.parse_args()  # NEW: two more arguments
    cluster = cluster_tf.read_cluster()  # NEW: who is who, from TF_CONFIG
    prepare(args, peers=cluster.workers + 1)  # NEW: the workers and the coordinator
    images, labels = load_channel(args.training)
    test = load_channel(args.test, images)

    workers, shape = cluster.workers, images.shape[1:]  # NEW:
    local_batch = local_batch_size(args.global_batch_size, workers)  # NEW:
    if cluster.task_type == "worker":  # NEW: the coordinator does the rest
        with own_shard(args, images, labels, cluster):  # NEW:
            return cluster_tf.serve_until_coordinator_ends(cluster, args.cluster_timeout)  # NEW:
    finished = cluster_tf.watch_hosts(cluster, args.cluster_timeout)  # NEW:
    strategy = tf.distribute.ParameterServerStrategy(cluster.resolver())  # NEW:
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)  # NEW:
    local_model = build_model(shape, args.hidden_units)  # NEW: a copy, to evaluate and save
    with strategy.scope():  # NEW: these variables live on the parameter servers
        model = build_model(shape, args.hidden_units)  # NEW: indented
        # NEW: W updates of a W-th of the batch move the model as far as one update of all.
        optimizer = build_optimizer(args.learning_rate / workers, model)  # NEW:
    cluster_tf.report_servers(model.trainable_variables)  # NEW: which server holds what
    train_step = make_train_step(model, optimizer)
    worker_step = make_worker_step(strategy, train_step, optimizer)  # NEW:

    report = Report(args, model.get_weights(), world_size=workers)  # NEW: world_size
    kind = f"{workers} parameter-server workers"  # NEW: resumes only its own kind
    kept = Checkpoints(args, model, optimizer, report, made_by=kind)  # NEW: kind
    # NEW: each worker runs read_shard itself, on its own host's file.
    seed = args.seed + kept.steps_done  # NEW: a resumed run draws another order
    dataset = partial(read_shard, shape, local_batch, seed)  # NEW:
    batches = iter(coordinator.create_per_worker_dataset(dataset))  # NEW:
    for epoch, steps in epochs_and_steps(args, len(labels)):
        stale = []  # NEW:
        for count in kept.intervals(epoch, steps):  # NEW: the whole epoch without checkpoints
            total = count * workers  # NEW: updates
            # NEW: whichever worker is free takes the next update, doesn't wait for the others.
            updates = [coordinator.schedule(worker_step, (batches,)) for _ in range(total)]  # NEW:
            stale += cluster_tf.report_updates(report, updates, workers)  # NEW:
        local_model.set_weights(model.get_weights())  # NEW: from the parameter servers
        evaluate = partial(accuracy, local_model, *test)  # NEW:
        report.end_epoch(epoch, evaluate, mean_staleness=cluster_tf.mean_of(stale))  # NEW:

    finished.set()  # NEW: the hosts may end now
    cluster_tf.report_classes(local_model, *test)  # NEW: does it know what each worker saw?
    report_weights(args, local_model.get_weights())  # NEW: local_model
    save_model(local_model, args.save_to)  # NEW: local_model


if __name__ == "__main__":
    run_main(main)
