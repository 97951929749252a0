"""Train a small image classifier in one TensorFlow process on several devices of one machine.

    python scripts/train_tf_mirrored.py
    python scripts/train_tf_mirrored.py --devices 4

tf.distribute.MirroredStrategy keeps one replica of the model on each device. The devices are
the machine's GPUs; without any, --devices logical CPU devices, so that there really are several
replicas (they share the cores: this shows how it works, not that it is fast). SageMaker:
entry_point="train_tf_mirrored.py", source_dir="scripts", one instance, no distribution.
Lines marked NEW are what train_tf.py doesn't have.
"""

from common.keras2 import tf  # first: whoever imports TensorFlow first chooses the Keras

# isort: split
from common.arguments import local_batch_size, parser_for  # NEW: local_batch_size
from common.checkpoint_tf import Checkpoints
from common.data import epochs_and_steps, load_channel
from common.errors import ScriptError, run_main  # NEW: ScriptError
from common.model_tf import accuracy, build_model, build_optimizer, mean_loss, prepare, save_model
from common.report import Report, report_weights


def replica_devices(count: int) -> list[str]:  # NEW:
    """Return the GPUs' names or, without any, those of `count` new logical CPU devices."""  # NEW:
    gpus = tf.config.list_physical_devices("GPU")  # NEW:
    if gpus:  # NEW:
        if count > len(gpus):  # NEW:
            raise ScriptError(f"--devices {count}, but {len(gpus)} GPU(s) are here")  # NEW:
        gpus = gpus[:count] if count else gpus  # NEW:
        tf.config.set_visible_devices(gpus, "GPU")  # NEW: prepare() left one for this process
        return [f"GPU:{i}" for i in range(len(gpus))]  # NEW:
    parts = [tf.config.LogicalDeviceConfiguration()] * (count or 2)  # NEW:
    cpu = tf.config.list_physical_devices("CPU")[0]  # NEW:
    tf.config.set_logical_device_configuration(cpu, parts)  # NEW:
    return [f"CPU:{i}" for i in range(len(parts))]  # NEW:


def make_train_step(model, optimizer, strategy):  # NEW: strategy
    """Return the function that trains on one batch, images and labels, and returns its loss."""
    replicas = strategy.num_replicas_in_sync  # NEW:

    def replica_step(batch_images, batch_labels):  # NEW: runs on every replica, on its part
        with tf.GradientTape() as tape:
            # NEW: apply_gradients *sums* over replicas, and the mean of the whole is wanted.
            loss = mean_loss(model, batch_images, batch_labels) / replicas  # NEW: / replicas
        gradients = tape.gradient(loss, model.trainable_variables)
        # No strict= here: AutoGraph of TensorFlow 2.12 has its own zip, which doesn't know it.
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # noqa: B905
        return loss

    @tf.function  # NEW:
    def train_step(batch_images, batch_labels):  # NEW: on the whole global batch
        losses = strategy.run(replica_step, (batch_images, batch_labels))  # NEW:
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)  # NEW:

    return train_step


def main() -> None:
    """Read the arguments, train, evaluate after each epoch, save the model."""
    parser = parser_for(__file__, __doc__)  # NEW:
    parser.add_argument("--devices", type=int, default=0, help="0: every GPU, else 2 CPUs")  # NEW:
    args = parser.parse_args()  # NEW:
    prepare(args)
    devices = replica_devices(args.devices)  # NEW: before TensorFlow computes anything
    strategy = tf.distribute.MirroredStrategy(devices)  # NEW:
    images, labels = load_channel(args.training)
    test = load_channel(args.test, images)

    local_batch_size(args.global_batch_size, len(devices))  # NEW: refuses unequal parts
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(len(labels), seed=args.seed)
    dataset = dataset.batch(args.global_batch_size, drop_remainder=True)
    dataset = strategy.experimental_distribute_dataset(dataset)  # NEW: a part for each replica

    with strategy.scope():  # NEW: variables made here are mirrored on every device
        model = build_model(images.shape[1:], args.hidden_units)  # NEW: indented
        optimizer = build_optimizer(args.learning_rate, model)  # NEW: indented

    train_step = make_train_step(model, optimizer, strategy)  # NEW: strategy

    report = Report(args, model.get_weights(), world_size=len(devices))  # NEW: world_size
    kept = Checkpoints(args, model, optimizer, report)  # resumes from the newest, if there is one
    for epoch, steps in epochs_and_steps(args, len(labels)):
        for batch_images, batch_labels in kept.batches(dataset, epoch, steps):
            report.step(train_step(batch_images, batch_labels))
        report.end_epoch(epoch, evaluate=lambda: accuracy(model, *test))

    # NEW: one "rank" per replica: every device has a copy of each variable, and all are equal.
    for replica in range(len(devices)):  # NEW:
        copies = [strategy.experimental_local_results(w)[replica] for w in model.weights]  # NEW:
        report_weights(args, [one.numpy() for one in copies], replica)  # NEW:
    save_model(model, args.save_to)


if __name__ == "__main__":
    run_main(main)
