"""The table of failures, and `show`, which reproduces one."""

from __future__ import annotations

import time

from workshop.breaking import ranks
from workshop.breaking.jobs import JOBS
from workshop.breaking.shown import Failure, Seen, Shown
from workshop.display import Progress

RANKS = (
    Failure(
        "rank-dies",
        "rank 1 of 2 kills itself with SIGKILL at step 5, as Linux kills a process when memory "
        "runs out; under torchrun, then under mpirun",
        "The launcher ends the other rank too, and its exit status is not 0. A job is Failed.",
        "Read what the launcher says of the first rank that failed, not of the others. Save "
        "checkpoints, so that the next job resumes. torchrun --max-restarts 1 starts all ranks "
        "again by itself (set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, or they may look for the dead "
        "ones: pytorch#135712); SageMaker's launcher and mpirun do not.",
        "08",
        20,
        ranks.rank_dies,
    ),
    Failure(
        "rank-hangs",
        "rank 0 waits for rank 1 at a barrier, and rank 1 for a file that rank 0 writes after it",
        "Nothing. No error, no line, no use of the processor, until a timeout: gloo's and NCCL's "
        "are 30 and 10 minutes in PyTorch, here it is 10 seconds.",
        "Find the rank that is somewhere else than the others: register faulthandler for SIGUSR1 "
        "and send that to each (kill -USR1 PID). dist.monitored_barrier(timeout=...) names the "
        "rank that did not come. Give init_process_group a timeout, and the job a max_run.",
        "02",
        20,
        ranks.rank_hangs,
    ),
    Failure(
        "mismatched-shapes",
        "each of 2 ranks counts the classes in its own part of the data, which is sorted by label",
        "DDP stops before the first step. All-reduce by hand would hang, or add what does not "
        "belong together.",
        "What gives the model its shape must be the same on every rank: take it from the "
        "arguments, or let rank 0 count and broadcast it.",
        "02",
        10,
        ranks.mismatched_shapes,
    ),
    Failure(
        "forgotten-broadcast",
        "2 ranks average their gradients, but begin with weights of different seeds",
        "No error, and the loss may even fall. Each rank trains a model of its own: the hashes of "
        "the weights differ from the first step to the last.",
        "Broadcast rank 0's weights (and the optimizer's state) before the first step. DDP does "
        "it; hvd.broadcast_variables does it for Horovod. Print a hash of the weights of every "
        "rank.",
        "04",
        10,
        ranks.forgotten_broadcast,
    ),
    Failure(
        "forgotten-set-epoch",
        "2 ranks read through a DistributedSampler, and nobody calls its set_epoch",
        "No error. The images come in the same order in every epoch.",
        "Call sampler.set_epoch(epoch) before each epoch. Horovod with tf.data: shuffle with "
        "reshuffle_each_iteration.",
        "02",
        12,
        ranks.forgotten_set_epoch,
    ),
    Failure(
        "lr-not-scaled",
        "2 ranks take a global batch twice as large as 1 rank, with the same learning rate",
        "No error. An epoch has half as many steps, each no longer than before: the loss falls "
        "more slowly per epoch, and more ranks seem to train worse.",
        "Scale the learning rate with the number of ranks. Where the first steps then diverge, "
        "warm it up over some epochs.",
        "01",
        20,
        ranks.lr_not_scaled,
    ),
    Failure(
        "ranks-overwrite",
        "each of 2 ranks saves its checkpoint to the same file, and reads it back",
        "Now and then a file that cannot be read, or a mixture of two. Mostly all is well, until "
        "somebody needs the checkpoint.",
        "Rank 0 alone writes: to a temporary file in the same directory, which then is renamed.",
        "04",
        10,
        ranks.ranks_overwrite,
    ),
)
ALL = {one.name: one for one in (*RANKS, *JOBS)}


class UnknownFailure(ValueError):
    """There is no failure of this name; the message has those that are."""


def names() -> list[str]:
    """The names of all failures."""
    return list(ALL)


def of_name(name: str) -> Failure:
    """The failure of this name. Raises UnknownFailure."""
    if name not in ALL:
        raise UnknownFailure(f"There is no failure {name!r}. There are: {', '.join(ALL)}.")
    return ALL[name]


def table():
    """A pandas table of all failures: what is done, what one sees, what mends it, the lesson."""
    import pandas as pd

    rows = [
        {
            "name": one.name,
            "symptom": one.symptom,
            "remedy": one.remedy,
            "lesson": one.lesson,
            "seconds": one.seconds,
        }
        for one in ALL.values()
    ]
    return pd.DataFrame(rows).set_index("name")


def show(name: str, mended: bool = False) -> Shown:
    """Reproduce a failure on this machine and tell what was seen.

    Args:
        name: one of `names()`.
        mended: mend the mistake first; then nothing must fail.

    Raises UnknownFailure. An interrupt ends all that was started.
    """
    failure, live = of_name(name), Progress()
    live.update(f"{name}: about {failure.seconds} s ...")
    began = time.monotonic()
    seen = failure.reproduce(mended)
    seconds = time.monotonic() - began
    shown = _told(failure, seen, seconds, mended)
    live.finish(f"{name}: {shown.verdict}")
    return shown


def _told(failure: Failure, seen: Seen, seconds: float, mended: bool) -> Shown:
    return Shown(
        name=failure.name,
        done=failure.done,
        symptom=failure.symptom,
        line=seen.line,
        remedy=failure.remedy,
        lesson=failure.lesson,
        seconds=round(seconds, 1),
        as_described=not seen.impossible and seen.failed != mended,
        mended=mended,
        impossible=seen.impossible,
    )
