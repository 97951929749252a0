"""What a run says, for comparison: JSON lines on stdout, a hash of the weights.

A line such as {"event": "epoch", "epoch": 1, "train_loss": 0.42, ...} is read by programs as
JSON and by a SageMaker metric definition with a regex such as `"train_loss": ([0-9.eE+-]+)`.
"""

import hashlib
import json
import sys
import time
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
    """Collects the loss of each step; rank 0 prints means, speed and accuracy.

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
        self._clock = time.perf_counter()
        self._timed_steps = 0
        self._traced = False
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
        self._timed_steps += 1
        every = self._args.log_every
        if every and self._step % every == 0:
            value = float(self._average(float(loss)))
            if self._rank == 0:
                emit(event="step", step=self._step, train_loss=round(value, 6))
        if not self._traced:
            # The first step also traces or compiles the model: leave it out of the speed.
            self._traced = True
            float(loss)
            self._clock, self._timed_steps = time.perf_counter(), 0

    def end_epoch(self, epoch: int, evaluate: Callable[[], float], **fields) -> None:
        """Print the epoch's line. Rank 0 alone calls `evaluate`, which returns the accuracy.

        `step_seconds` is seconds per global batch, `samples_per_second` counts all ranks; both
        are null when the epoch had no step after the run's first.
        """
        mean = sum(float(loss) for loss in self._losses) / len(self._losses)
        seconds = time.perf_counter() - self._clock
        train_loss = float(self._average(mean))
        if self._rank == 0:
            per_step = seconds / self._timed_steps if self._timed_steps else None
            speed = self._args.global_batch_size / per_step if per_step else None
            emit(
                event="epoch",
                epoch=epoch,
                step=self._step,
                train_loss=round(train_loss, 6),
                test_accuracy=round(evaluate(), 6),
                samples_per_second=speed and round(speed, 1),
                step_seconds=per_step and round(per_step, 6),
                **fields,
            )
        self._losses = []
        self._timed_steps, self._clock = 0, time.perf_counter()


def report_weights(weights: list[np.ndarray], rank: int = 0) -> None:
    """Print a hash of this rank's weights. Ranks that trained one model print the same."""
    emit(event="weights", rank=rank, weights_sha256=weights_hash(weights))
