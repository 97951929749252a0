"""Train a small image classifier on several hosts with MultiWorkerMirroredStrategy.

    python scripts/common/launch_workers.py --workers 2 -- --epochs 5
    python scripts/train_tf_multiworker.py

The first starts two workers on this machine; what follows `--` are arguments of this script. The
second trains alone. SageMaker: entry_point="train_tf_multiworker.py", source_dir="scripts",
instance_count=2, distribution={"multi_worker_mirrored_strategy": {"enabled": True}}.

The launcher runs this script on every host and says in TF_CONFIG who the others are. TensorFlow
itself connects them: there is no mpirun. Lines marked NEW are what train_tf.py doesn't have.
"""

from functools import partial  # NEW:

from common.keras2 import tf  # first: whoever imports TensorFlow first chooses the Keras

# isort: split
from common import workers_tf  # NEW:
from common.arguments import local_batch_size, parser_for  # NEW: local_batch_size
from common.checkpoint_tf import Checkpoints
from common.data import epochs_and_steps, load_channel
from common.errors import run_main
from common.model_tf import accuracy, build_model, build_optimizer, mean_loss, save_model  # NEW:
from common.report import Report, report_weights


def make_train_step(model, optimizer):
    """Return the function that trains on one batch, images and labels, and returns its loss."""

    @tf.function
    def train_step(batch_images, batch_labels):
        with tf.GradientTape() as tape:
            loss = mean_loss(model, batch_images, batch_labels)
        gradients = tape.gradient(loss, model.trainable_variables)
        loss, *gradients = workers_tf.mean_over_replicas([loss, *gradients])  # NEW: the all-reduce
        # No strict= here: AutoGraph of TensorFlow 2.12 has its own zip, which doesn't know it.
        pairs = zip(gradients, model.trainable_variables)  # NEW:  # noqa: B905
        # NEW: left to itself, apply_gradients would take the sum over all replicas.
        optimizer.apply_gradients(pairs, skip_gradients_aggregation=True)  # NEW:
        return loss

    return train_step


def main() -> None:
    """Read the arguments, train, evaluate after each epoch, save the model."""
    args = parser_for(__file__, __doc__).parse_args()
    rank = workers_tf.prepare(args)  # NEW: TF_CONFIG says who this is
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # NEW: meet the other workers
    replicas = strategy.num_replicas_in_sync  # NEW: one a worker, or one a GPU
    local_batch_size(args.global_batch_size, replicas)  # NEW: refuses unequal parts
    images, labels = load_channel(args.training)
    test = load_channel(args.test, images)

    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(len(labels), seed=args.seed)
    dataset = dataset.batch(args.global_batch_size, drop_remainder=True)
    # NEW: the batch above stays the global one; the strategy gives each replica its part.
    dataset = dataset.with_options(workers_tf.sharded_by_element())  # NEW:
    dataset = strategy.experimental_distribute_dataset(dataset)  # NEW:

    with strategy.scope():  # NEW: variables made here start from rank 0's values
        model = build_model(images.shape[1:], args.hidden_units)  # NEW: indented
        optimizer = build_optimizer(args.learning_rate, model)  # NEW: indented

    train_step = make_train_step(model, optimizer)

    report = Report(args, model.get_weights(), rank, replicas)  # NEW: rank, replicas
    broadcast = partial(workers_tf.broadcast, strategy)  # NEW: rank 0 reads, for all
    kept = Checkpoints(args, model, optimizer, report, rank, broadcast)  # NEW:
    for epoch, steps in epochs_and_steps(args, len(labels)):
        for batch in kept.batches(dataset, epoch, steps):  # NEW: a part for each replica
            losses = strategy.run(train_step, args=batch)  # NEW: one a replica, all equal
            report.step(strategy.experimental_local_results(losses)[0])  # NEW:
        report.end_epoch(epoch, evaluate=lambda: accuracy(model, *test))

    report_weights(args, model.get_weights(), rank)  # NEW: rank
    with workers_tf.saving_folder(args.save_to, rank) as folder:  # NEW: rank 0's is kept
        save_model(model, folder)  # NEW: indented, folder
    workers_tf.leave(strategy)  # NEW: together


if __name__ == "__main__":
    run_main(main)
