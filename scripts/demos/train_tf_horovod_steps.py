"""Turn a TensorFlow script into a Horovod script in nine steps that can be left out one by one.

    mpirun -np 2 python scripts/demos/train_tf_horovod_steps.py --max-steps 10
    python scripts/demos/train_tf_horovod_steps.py

Each line that ends in STEP n belongs to step n; without all of them this is a one-process
script. Lesson 04 runs copies that lack a step. Unlike train_tf_horovod.py, which keeps the
global batch, this one follows Horovod's own recipe: every rank keeps its batch, so the global
batch and the learning rate grow with the ranks. Each rank also prints what it saw. There are no
checkpoints: what this script is for is its evidence, which is of all steps from the first.
"""

from common.keras2 import tf  # first: whoever imports TensorFlow first chooses the Keras

# isort: split
import horovod.tensorflow as hvd  # STEP 1

from common.arguments import local_batch_size, parser_for
from common.data import epochs_and_steps, load_channel
from common.errors import run_main
from common.evidence import Evidence
from common.model_tf import accuracy, build_model, mean_loss, prepare, save_model, set_random_seed
from common.report import Report, report_weights


def all_reduce_mean(value: float):  # STEP 9
    """Return the mean of every rank's `value`; every rank must call it."""  # STEP 9
    return hvd.allreduce(tf.constant(value), name="mean")  # STEP 9


def warmed_up(step: int, scaled: float, size: int, warmup_steps: int) -> float:  # STEP 8
    """Return the learning rate of a step, from 1: near one rank's, later `scaled`."""  # STEP 8
    single = scaled / size  # STEP 8
    return single + (scaled - single) * min(1.0, step / max(1, warmup_steps))  # STEP 8


def make_train_step(model, optimizer):
    """Return the function that trains on one batch, images and labels, and returns its loss."""

    @tf.function(autograph=False)  # Horovod's code needs no conversion: a second or two
    def train_step(batch_images, batch_labels):
        with tf.GradientTape() as tape:
            loss = mean_loss(model, batch_images, batch_labels)
        tape = hvd.DistributedGradientTape(tape)  # STEP 4
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return train_step


def main() -> None:
    """Read the arguments, train, evaluate after each epoch, save the model."""
    parser = parser_for(__file__, __doc__)
    parser.add_argument("--warmup-steps", type=int, default=20, help="0: the full rate at once")
    parser.add_argument("--no-save", action="store_true", help="for runs whose model nobody needs")
    args = parser.parse_args()
    rank, size, local_rank, local_size, average = 0, 1, 0, 1, float
    hvd.init()  # STEP 1
    rank, size = hvd.rank(), hvd.size()  # STEP 1
    local_rank, local_size = hvd.local_rank(), hvd.local_size()  # STEP 2
    gpus = tf.config.list_physical_devices("GPU")  # STEP 2
    for gpu in gpus:  # STEP 2
        tf.config.experimental.set_memory_growth(gpu, True)  # STEP 2
    if gpus:  # STEP 2
        tf.config.set_visible_devices(gpus[local_rank % len(gpus)], "GPU")  # STEP 2
    average = all_reduce_mean  # STEP 9
    prepare(args, local_rank, local_size)  # divides the cores among the ranks
    args.global_batch_size *= size  # STEP 3
    args.learning_rate *= size  # STEP 3

    images, labels = load_channel(args.training)
    test = load_channel(args.test, images)
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(len(labels), seed=args.seed)  # the same order on every rank
    dataset = dataset.shard(size, rank)  # STEP 7
    batch = local_batch_size(args.global_batch_size, size)
    dataset = dataset.batch(batch, drop_remainder=True)

    # Each rank its own random numbers, as dropout and augmentation need. Also its own weights!
    # Not above the data set: tf.data mixes this seed into its own, and the orders would differ.
    set_random_seed(args.seed + rank)
    model = build_model(images.shape[1:], args.hidden_units)
    optimizer = tf.keras.optimizers.SGD(args.learning_rate, momentum=0.9)
    train_step = make_train_step(model, optimizer)
    report = Report(args, model.get_weights(), rank, size, average)
    evidence = Evidence(rank, model.get_weights(), len(optimizer.variables))
    step = 0
    for epoch, steps in epochs_and_steps(args, len(labels)):
        for batch_images, batch_labels in dataset.take(steps):
            step += 1
            rate = warmed_up(step, args.learning_rate, size, args.warmup_steps)  # STEP 8
            optimizer.learning_rate.assign(rate)  # STEP 8
            loss = train_step(batch_images, batch_labels)
            if step == 1:  # STEP 5
                hvd.broadcast_variables(model.variables, root_rank=0)  # STEP 5
                hvd.broadcast_variables(optimizer.variables, root_rank=0)  # STEP 5
            report.step(loss)
            evidence.step(batch_images, model.get_weights, len(optimizer.variables))
        report.end_epoch(epoch, evaluate=lambda: accuracy(model, *test))
    evidence.show(model.get_weights())
    report_weights(model.get_weights(), rank)
    if rank != 0:  # STEP 6
        return  # STEP 6
    if not args.no_save:
        save_model(model, args.save_to)


if __name__ == "__main__":
    run_main(main)
