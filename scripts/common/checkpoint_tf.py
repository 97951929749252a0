"""Checkpoints of a TensorFlow run, and how training resumes from one.

Kept: the model's variables, the optimizer's (momentum, count of updates), the step, the epoch,
the steps done of it and their mean loss. The data's order is not kept but made again: each pass
over a data set with a seed draws its own order, the same ones in every run. So the passes of
finished epochs are begun and left, and what was done of the running one is skipped. No other
random number is drawn once the model is made: there is none whose state would have to be kept.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import numpy as np

from common.checkpoints import KEEP, CheckpointFolder
from common.keras2 import tf
from common.report import Report


class Checkpoints:
    """Resumes from the newest checkpoint, if there is one, and writes new ones on the way.

    Every rank makes one. Rank 0 alone reads and writes files; the others get what it read. A
    step counts the same with any number of ranks, so a run may resume with another number.

    Args:
        args: the script's arguments.
        model, optimizer: with all their variables made; these become the checkpoint's.
        report: of the run; its losses become the checkpoint's.
        rank: of this process.
        broadcast: gives every rank rank 0's values of a list of tf.Variables; with one process
            none is needed.
        made_by: what can resume from these checkpoints.

    Attributes: steps_done: how many steps an earlier run did.

    Raises ScriptError for checkpoints of another run or of another model.
    """

    def __init__(
        self,
        args,
        model,
        optimizer,
        report: Report,
        rank: int = 0,
        broadcast: Callable[[list], None] | None = None,
        made_by: str = "tensorflow",
    ) -> None:
        self._report, self._rank, self.steps_done = report, rank, 0
        self._folder = CheckpointFolder(args, made_by, [one.shape for one in model.variables])
        self._at = {"step": 0, "epoch": 1, "epoch_steps": 0, "epoch_loss": 0.0}
        if args.checkpoint_dir is None:
            return
        # The report's numbers as variables too: a broadcast takes them like any other.
        self._numbers = {name: tf.Variable(np.array(at)) for name, at in self._at.items()}
        if rank == 0:
            everything = tf.train.Checkpoint(model=model, optimizer=optimizer, **self._numbers)
            self._manager = tf.train.CheckpointManager(
                everything, str(args.checkpoint_dir), max_to_keep=KEEP, checkpoint_name="step"
            )
            # Variables may be on parameter servers, whose disks are not this host's: all goes
            # through a device here.
            here = tf.DeviceSpec.from_string(self._numbers["step"].device)
            here = here.replace(device_type="CPU", device_index=0).to_string()
            self._options = tf.train.CheckpointOptions(experimental_io_device=here)

            def read(path: str) -> None:
                # assert_consumed: a variable that is only in the checkpoint is an error, too.
                everything.restore(path, self._options).assert_consumed()

            self._folder.load(self._manager.checkpoints[::-1], read)
        if broadcast:
            broadcast([*model.variables, *variables_of(optimizer), *self._numbers.values()])
        self._at = {name: number.numpy().item() for name, number in self._numbers.items()}
        self.steps_done = self._at["step"]
        self._report.resume(self._at)

    def batches(self, dataset: Iterable, epoch: int, steps: int) -> Iterator:
        """Yield the batches of an epoch of `steps` steps that are still to be trained on.

        The loop takes the next batch when it has trained on the one before: then that step is
        done, and a checkpoint is written if one is due.
        """
        one_pass = iter(dataset)  # also if nothing is to be done: the next pass is another one
        rest = islice(one_pass, self._done_of(epoch, steps), None)
        for count in self.intervals(epoch, steps):
            yield from islice(rest, count)

    def intervals(self, epoch: int, steps: int) -> Iterator[int]:
        """Yield how many steps of the epoch to do until a checkpoint is due, then write that.

        Without checkpoints that is the whole epoch.
        """
        done = self._done_of(epoch, steps)
        while done < steps:
            count = 1
            while done + count < steps and not self._folder.due(self._at["step"] + count, False):
                count += 1
            yield count
            done += count
            self._at["step"] += count
            if self._folder.due(self._at["step"], ends_epoch=done == steps):
                self.save()

    def end_epoch(self, steps: int) -> None:
        """Write a checkpoint after a whole epoch of `steps` steps that the report has ended."""
        wanted = self._folder.due(self._at["step"], ends_epoch=True)
        if wanted and self._report.progress()["step"] % steps == 0:
            self.save()

    def save(self) -> None:
        """Write a checkpoint of this moment. Every rank must call it alike; rank 0 writes."""
        at = self._report.progress()  # on every rank: it averages over them
        if self._rank:
            return
        for name, number in self._numbers.items():
            number.assign(at[name])
        self._folder.save(at["step"], lambda: self._manager.save(at["step"], options=self._options))

    def _done_of(self, epoch: int, steps: int) -> int:
        """How many steps of the epoch an earlier run did."""
        if epoch != self._at["epoch"]:
            return steps if epoch < self._at["epoch"] else 0
        return min(self._at["epoch_steps"], steps)


def variables_of(optimizer) -> list:
    """Return the optimizer's variables; they are a method before TensorFlow 2.11."""
    found = optimizer.variables
    return list(found() if callable(found) else found)
