"""Train with model.fit on several TensorFlow processes, with Horovod or with SMDDP.

    mpirun -np 2 python scripts/train_tf_fit.py --library horovod --training DIR --test DIR
    python scripts/train_tf_fit.py --training DIR --test DIR

SageMaker: entry_point="train_tf_fit.py", source_dir="scripts", and one of
    distribution={"mpi": {"enabled": True}}, hyperparameters={"library": "horovod"}
    distribution={"smdistributed": {"dataparallel": {"enabled": True}}}, ... {"library": "smddp"}

That pair is the whole switch: the two libraries have the same calls. The channels hold TFRecord
files as data_prep writes them (digits, CIFAR-10). Each rank reads files of its own.

`fit` can begin at an epoch, not inside one: checkpoints are written at the ends of epochs alone.
"""

from functools import partial
from pathlib import Path

from common.keras2 import tf  # first: whoever imports TensorFlow first chooses the Keras

# isort: split
from common.arguments import local_batch_size, parser_for
from common.checkpoint_tf import Checkpoints
from common.errors import ScriptError, run_main
from common.libraries_tf import LIBRARIES, load_library
from common.model_tf import build_model, build_optimizer, prepare, save_model
from common.report import Report, report_weights
from common.tfrecords import Channel


class DataParallelModel(tf.keras.Model):
    """A model whose `fit` averages the gradients of all ranks in every step.

    `fit` hides the gradients; a train_step of one's own is where they can be had.
    """

    api = None  # the library's module: set before the first step

    def train_step(self, data):
        """Keras calls this for each batch, images and labels; returns what `fit` shows."""
        images, labels = data
        with tf.GradientTape() as tape:
            logits = self(images, training=True)
            loss = self.compute_loss(images, labels, logits)
        tape = self.api.DistributedGradientTape(tape)  # the all-reduce
        gradients = tape.gradient(loss, self.trainable_variables)
        # No strict= here: AutoGraph of older TensorFlow has its own zip, which doesn't know it.
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))  # noqa: B905
        return {"loss": loss}


class BroadcastAfterFirstStep(tf.keras.callbacks.Callback):
    """Copies rank 0's variables to all ranks, once, when the first step has ended.

    Not earlier: Keras makes the optimizer's variables (the momentum of each weight) in the
    first step, and what does not exist can't be copied. That step was each rank's own; the copy
    undoes the difference.
    """

    def __init__(self, api):
        super().__init__()
        self._api, self._done = api, False

    def on_train_batch_end(self, batch, logs=None):
        """Called by Keras after each step."""
        if self._done:
            return
        variables = self.model.optimizer.variables
        variables = variables() if callable(variables) else variables  # a method before TF 2.11
        self._api.broadcast_variables(self.model.variables, root_rank=0)
        self._api.broadcast_variables(list(variables), root_rank=0)
        self._done = True


class WarmUp(tf.keras.callbacks.Callback):
    """Raises the learning rate step by step to `rate` over the first `steps` steps.

    A large global batch wants a large rate, and the first steps of a fresh model can't bear it
    (Goyal et al., 2017, arXiv:1706.02677).
    """

    def __init__(self, rate: float, steps: int, steps_done: int):
        super().__init__()
        self._rate, self._steps, self._step = rate, steps, steps_done

    def on_train_batch_begin(self, batch, logs=None):
        """Called by Keras before each step."""
        self._step += 1
        if self._step <= self._steps:
            self.model.optimizer.learning_rate.assign(self._rate * self._step / self._steps)


class StopAfter(tf.keras.callbacks.Callback):
    """Ends `fit` after so many steps."""

    def __init__(self, steps: int):
        super().__init__()
        self._left = steps

    def on_train_batch_end(self, batch, logs=None):
        """Called by Keras after each step."""
        self._left -= 1
        self.model.stop_training |= self._left == 0


class Reporter(tf.keras.callbacks.Callback):
    """Prints the same records as the other scripts do, and writes a checkpoint at epoch ends."""

    def __init__(self, report: Report, evaluate, kept: Checkpoints):
        super().__init__()
        self._report, self._evaluate, self._kept = report, evaluate, kept

    def on_train_batch_end(self, batch, logs=None):
        """Called by Keras after each step."""
        self._report.step(logs["loss"])

    def on_epoch_end(self, epoch, logs=None):
        """Called by Keras after each epoch, counted from 0."""
        self._report.end_epoch(epoch + 1, self._evaluate)
        self._kept.end_epoch(self.params["steps"])


def parse():
    """Return the arguments: those of every script, and this one's own."""
    parser = parser_for(__file__, __doc__)
    parser.add_argument("--library", choices=LIBRARIES, default="horovod")
    parser.add_argument("--warmup-steps", "--warmup_steps", type=int, default=0)
    args = parser.parse_args()
    if args.checkpoint_every:
        raise ScriptError(
            "--checkpoint-every: `fit` can't resume inside an epoch. Leave it out: a checkpoint is "
            "written at each epoch's end"
        )
    return args


def main() -> None:
    """Read the arguments, train with model.fit, evaluate after each epoch, save the model."""
    args = parse()
    library = load_library(args.library)
    api, rank, world_size = library.api, library.api.rank(), library.api.size()
    prepare(args, api.local_rank(), api.local_size())

    local_batch = local_batch_size(args.global_batch_size, world_size)
    training = Channel(Path(args.training), rank, world_size)
    steps = training.steps_per_epoch(local_batch, library.mean)
    test = Channel(Path(args.test))

    built = build_model(training.image_shape, args.hidden_units)
    model = DataParallelModel(built.inputs, built.outputs)
    model.api = api
    cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(build_optimizer(args.learning_rate, model), cross_entropy)

    report = Report(args, model.get_weights(), rank, world_size, library.mean)
    broadcast = partial(api.broadcast_variables, root_rank=0)
    kept = Checkpoints(args, model, model.optimizer, report, rank, broadcast, "tensorflow fit")
    done = kept.steps_done
    batches = training.batches(local_batch, args.seed).skip(done)
    callbacks = [BroadcastAfterFirstStep(api), WarmUp(args.learning_rate, args.warmup_steps, done)]
    callbacks += [Reporter(report, lambda: test.accuracy(model), kept)]
    callbacks += [StopAfter(args.max_steps - done)] if args.max_steps else []
    begin = args.epochs if 0 < args.max_steps <= done else done // steps
    model.fit(
        batches,
        steps_per_epoch=steps,
        initial_epoch=begin,
        epochs=args.epochs,
        callbacks=callbacks,
        verbose=0,
    )

    report_weights(args, model.get_weights(), rank)
    if rank == 0:
        built.set_weights(model.get_weights())
        save_model(built, args.save_to)


if __name__ == "__main__":
    run_main(main)
