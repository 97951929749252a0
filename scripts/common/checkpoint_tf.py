"""Checkpoints of a TensorFlow run: what is kept, and how training goes on from there.

Kept: the model's variables, the optimizer's (momentum, count of updates), the step, the epoch,
the steps done of it and their mean loss. The data's order is not kept but made again: each pass
over a data set with a seed draws its own order, the same ones in every run. So the passes of
finished epochs are begun and left, and what was done of the running one is skipped. No other
random number is drawn once the model is made: there is none whose state would have to be kept.

tf.train.Checkpoint would write several files that are a checkpoint only together. One file is
there whole or not at all.
"""

import io
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import numpy as np

from common.checkpoints import CheckpointFiles
from common.errors import ScriptError
from common.keras2 import tf
from common.report import Report


class Checkpoints:
    """Goes on from the newest checkpoint, where there is one, and writes new ones on the way.

    Every rank makes one. Rank 0 alone reads and writes files; the others get what it read. A
    step counts the same with any number of ranks, so a run may go on with another number.

    Args:
        args: the script's arguments.
        model, optimizer: with all their variables made; these become the checkpoint's.
        report: of the run; its losses become the checkpoint's.
        rank: of this process.
        broadcast: gives every rank rank 0's values of a list of tf.Variables; with one process
            none is needed.
        made_by: what can go on from these checkpoints.

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
        self._files = CheckpointFiles(args, made_by, rank)
        self._at = {"step": 0, "epoch": 1, "epoch_steps": 0, "epoch_loss": 0.0}
        if args.checkpoint_dir is None:
            return
        # The report's numbers as variables too: a broadcast takes them like any other.
        numbers = [tf.Variable(np.array(value), trainable=False) for value in self._at.values()]
        self._variables = [*model.variables, *variables_of(optimizer), *numbers]
        if rank == 0:
            self._read()
        if broadcast:
            broadcast(self._variables)
        self._at = dict(zip(self._at, [one.numpy().item() for one in numbers], strict=True))
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
            while done + count < steps and not self._files.due(self._at["step"] + count, False):
                count += 1
            yield count
            done += count
            self._at["step"] += count
            if self._files.due(self._at["step"], ends_epoch=done == steps):
                self.save()

    def end_epoch(self, steps: int) -> None:
        """Write a checkpoint after a whole epoch of `steps` steps that the report has ended."""
        wanted = self._files.due(self._at["step"], ends_epoch=True)
        if wanted and self._report.progress()["step"] % steps == 0:
            self.save()

    def save(self) -> None:
        """Write a checkpoint of this moment. Every rank must call it alike; rank 0 writes."""
        at = self._report.progress()  # on every rank: it averages over them
        if self._rank:
            return
        arrays = [one.numpy() for one in self._variables[: -len(at)]]
        packed = io.BytesIO()
        np.savez(packed, *arrays, *(at[name] for name in self._at))
        self._files.save(at["step"], packed.getvalue())

    def _done_of(self, epoch: int, steps: int) -> int:
        """How many steps of the epoch an earlier run did."""
        if epoch != self._at["epoch"]:
            return steps if epoch < self._at["epoch"] else 0
        return min(self._at["epoch_steps"], steps)

    def _read(self) -> None:
        state = self._files.latest()
        if state is None:
            return
        with np.load(io.BytesIO(state)) as saved:
            arrays = [saved[f"arr_{number}"] for number in range(len(saved.files))]
        found = [one.shape for one in arrays]
        wanted = [tuple(one.shape) for one in self._variables]
        if found != wanted:
            raise ScriptError(
                f"the checkpoint is of another model: its variables have the shapes {found}, "
                f"this run's {wanted}. Train on images of the same size to go on, or give "
                "another --checkpoint-dir to begin at step 0"
            )
        for variable, value in zip(self._variables, arrays, strict=True):
            variable.assign(value)


def variables_of(optimizer) -> list:
    """Return the optimizer's variables; they are a method before TensorFlow 2.11."""
    found = optimizer.variables
    return list(found() if callable(found) else found)
