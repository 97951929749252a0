"""Train a small image classifier on several TensorFlow processes with Horovod.

    mpirun -np 2 python scripts/train_tf_horovod.py
    horovodrun -np 2 python scripts/train_tf_horovod.py
    python scripts/train_tf_horovod.py

(mpirun wants --allow-run-as-root when you are root, and --oversubscribe for more ranks than
cores.) SageMaker: entry_point="train_tf_horovod.py", source_dir="scripts",
distribution={"mpi": {"enabled": True, "processes_per_host": 2}}. Lines marked NEW are what
train_tf.py doesn't have.
"""

from functools import partial  # NEW:

from common.keras2 import tf  # first: whoever imports TensorFlow first chooses the Keras

# isort: split
import horovod.tensorflow as hvd  # NEW:

from common.arguments import local_batch_size, parser_for  # NEW: local_batch_size
from common.checkpoint_tf import Checkpoints
from common.data import epochs_and_steps, load_channel
from common.errors import run_main
from common.model_tf import accuracy, build_model, build_optimizer, mean_loss, prepare, save_model
from common.report import Report, report_weights


def mean_over_ranks(value: float):  # NEW:
    """Return the mean of every rank's `value`; every rank must call it."""  # NEW:
    return hvd.allreduce(tf.constant(value), name="mean")  # NEW:


def make_train_step(model, optimizer):
    """Return the function that trains on one batch, images and labels, and returns its loss."""

    @tf.function
    def train_step(batch_images, batch_labels):
        with tf.GradientTape() as tape:
            loss = mean_loss(model, batch_images, batch_labels)
        tape = hvd.DistributedGradientTape(tape)  # NEW: averages the gradients of all ranks
        gradients = tape.gradient(loss, model.trainable_variables)
        # No strict= here: AutoGraph of TensorFlow 2.12 has its own zip, which doesn't know it.
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # noqa: B905
        return loss

    return train_step


def main() -> None:
    """Read the arguments, train, evaluate after each epoch, save the model."""
    args = parser_for(__file__, __doc__).parse_args()
    hvd.init()  # NEW: meet the other ranks
    prepare(args, hvd.local_rank(), hvd.local_size())  # NEW: share the machine's GPUs and cores
    images, labels = load_channel(args.training)
    test = load_channel(args.test, images)

    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(len(labels), seed=args.seed)
    # NEW: all ranks shuffle alike, then rank r takes examples r, r + size, ... of that order.
    dataset = dataset.shard(hvd.size(), hvd.rank())  # NEW:
    local_batch = local_batch_size(args.global_batch_size, hvd.size())  # NEW:
    dataset = dataset.batch(local_batch, drop_remainder=True)  # NEW: local_batch

    model = build_model(images.shape[1:], args.hidden_units)
    optimizer = build_optimizer(args.learning_rate, model)
    hvd.broadcast_variables(model.variables, root_rank=0)  # NEW: all start from rank 0's weights

    train_step = make_train_step(model, optimizer)

    report = Report(args, model.get_weights(), hvd.rank(), hvd.size(), mean_over_ranks)  # NEW:
    broadcast = partial(hvd.broadcast_variables, root_rank=0)  # NEW: rank 0 reads, for all
    kept = Checkpoints(args, model, optimizer, report, hvd.rank(), broadcast)  # NEW:
    for epoch, steps in epochs_and_steps(args, len(labels)):
        for batch_images, batch_labels in kept.batches(dataset, epoch, steps):
            report.step(train_step(batch_images, batch_labels))
        report.end_epoch(epoch, evaluate=lambda: accuracy(model, *test))

    report_weights(args, model.get_weights(), hvd.rank())  # NEW: rank
    if hvd.rank() == 0:  # NEW: one rank writes
        save_model(model, args.save_to)  # NEW: indented


if __name__ == "__main__":
    run_main(main)
