"""Train a small image classifier in one TensorFlow process.

    python scripts/train_tf.py
    python scripts/train_tf.py --epochs 2 --training data/mnist/training --test data/mnist/test

SageMaker: entry_point="train_tf.py", source_dir="scripts". `diff train_tf.py
train_tf_horovod.py` and `diff train_tf.py train_tf_ps.py` show what it takes to train on
several processes.
"""

from common.keras2 import tf  # first: whoever imports TensorFlow first chooses the Keras

# isort: split
from common.arguments import parser_for
from common.checkpoint_tf import Checkpoints
from common.data import epochs_and_steps, load_channel
from common.errors import run_main
from common.model_tf import accuracy, build_model, build_optimizer, mean_loss, prepare, save_model
from common.report import Report, report_weights


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


def main() -> None:
    """Read the arguments, train, evaluate after each epoch, save the model."""
    args = parser_for(__file__, __doc__).parse_args()
    prepare(args)
    images, labels = load_channel(args.training)
    test = load_channel(args.test, images)

    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(len(labels), seed=args.seed)
    dataset = dataset.batch(args.global_batch_size, drop_remainder=True)

    model = build_model(images.shape[1:], args.hidden_units)
    optimizer = build_optimizer(args.learning_rate, model)

    train_step = make_train_step(model, optimizer)

    report = Report(args, model.get_weights())
    kept = Checkpoints(args, model, optimizer, report)  # resumes from the newest, if there is one
    for epoch, steps in epochs_and_steps(args, len(labels)):
        for batch_images, batch_labels in kept.batches(dataset, epoch, steps):
            report.step(train_step(batch_images, batch_labels))
        report.end_epoch(epoch, evaluate=lambda: accuracy(model, *test))

    report_weights(args, model.get_weights())
    save_model(model, args.save_to)


if __name__ == "__main__":
    run_main(main)
