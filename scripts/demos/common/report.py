"""What a run says, for comparison: JSON lines on stdout, a hash of the weights.

A line such as {"event": "epoch", "epoch": 1, "train_loss": 0.42, ...} is read by programs as
JSON and by a SageMaker metric definition with a regex such as `"train_loss": ([0-9.eE+-]+)`.
"""

import hashlib
import json
import sys
from collections.abc import Callable

import numpy as np


def emit(**record) -> None:
    """Print one JSON line. One write, so that the lines of several ranks don't interleave."""
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


def weights_hash(weights: list[np.ndarray]) -> str:
    """Return the SHA-256 of all weights: one different bit gives another hash."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(w).tobytes() for w in weights)).hexdigest()


class Report:
    """Collects the loss of each step; rank 0 prints means and accuracy.

    Every rank must call `step` and `end_epoch` alike: `average` may be a collective operation.

    Args:
        args: the script's arguments.
        weights: the model's weights, to state how many bytes of gradients each step exchanges.
        rank, world_size: of this process; (0, 1) alone.
        average: turns this rank's mean loss into the mean over all ranks.
    """

    def __init__(self, args, weights, rank=0, world_size=1, average: Callable = float):
        self._args, self._rank, self._world_size, self._average = args, rank, world_size, average
        self._step = 0
        self._losses: list = []
        if rank == 0:
            emit(
                event="start",
                world_size=world_size,
                global_batch_size=args.global_batch_size,
                local_batch_size=args.global_batch_size // world_size,
                learning_rate=args.learning_rate,
                parameters=sum(w.size for w in weights),
                gradient_bytes=sum(w.nbytes for w in weights),
            )

    def step(self, loss) -> None:
        """Note the loss (a scalar) of one finished step; print it every --log-every steps."""
        self._step += 1
        self._losses.append(loss)
        every = self._args.log_every
        if every and self._step % every == 0:
            value = float(self._average(float(loss)))
            if self._rank == 0:
                emit(event="step", step=self._step, train_loss=round(value, 6))

    def end_epoch(self, epoch: int, evaluate: Callable[[], float]) -> None:
        """Print the epoch's line. Rank 0 alone calls `evaluate`, which returns the accuracy."""
        mean = sum(float(loss) for loss in self._losses) / len(self._losses)
        train_loss = round(float(self._average(mean)), 6)
        if self._rank == 0:
            accuracy = round(evaluate(), 6)
            emit(event="epoch", epoch=epoch, train_loss=train_loss, test_accuracy=accuracy)
        self._losses = []


def report_weights(weights: list[np.ndarray], rank: int = 0) -> None:
    """Print a hash of this rank's weights. Ranks that trained one model print the same."""
    emit(event="weights", rank=rank, weights_sha256=weights_hash(weights))
