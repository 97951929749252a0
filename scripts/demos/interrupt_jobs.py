"""Kill jobs at random times, with checkpoints at several intervals: how long does each take?

    python scripts/demos/interrupt_jobs.py --intervals 12,48,192 --schedules 6

A job is a process that trains a small model, writes a checkpoint every so many steps, and is ended
by kill -9, in the middle of a step or of a write. A new process then goes on from the last
checkpoint. The interruptions come at random, `--between` seconds apart on average; each schedule of
them is used once with each interval.

Hours pass in seconds because each job has a clock of its own: a step counts as `--step` seconds, a
checkpoint as `--write`, and an interruption comes when this clock says so. So the result does not
depend on what else the machine does. The model is in plain Python: processes that fork soon.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import pickle
import random
import signal
import tempfile
from pathlib import Path

from common.arguments import list_of, number, plain_parser
from common.errors import run_main
from common.report import emit

WIDTH = 4
FORKED = multiprocessing.get_context("fork")  # a fork need not import anything again


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = plain_parser(__doc__)
    positive, seconds = number(int, 1), number(float, 0, exclusive=True)
    parser.add_argument("--intervals", type=list_of(positive, "intervals"), default=[12, 48, 192])
    parser.add_argument("--schedules", type=positive, default=6, help="for each interval")
    parser.add_argument("--steps", type=positive, default=3840, help="of each job")
    parser.add_argument("--step", type=seconds, default=10, help="seconds of a step")
    parser.add_argument("--write", type=seconds, default=30, help="seconds of a checkpoint")
    parser.add_argument("--between", type=seconds, default=3600, help="mean between interruptions")
    parser.add_argument("--seed", type=int, default=0, help="of the schedules")
    return parser.parse_args()


def main() -> None:
    """Run the jobs, one after the other."""
    args = arguments()
    for schedule in range(args.schedules):
        for interval in args.intervals:
            gaps = random.Random(f"{args.seed} {schedule}")
            with tempfile.TemporaryDirectory(prefix="interrupt-jobs-") as folder:
                result = run_job(Path(folder), interval, gaps, args)
            emit(event="job", interval=interval, schedule=schedule, **result)


def run_job(folder: Path, interval: int, gaps: random.Random, args) -> dict:
    """Start a job again and again until it is ready; return what it took."""
    passed, interruptions = 0.0, 0
    while True:
        until = gaps.expovariate(1 / args.between)
        process = FORKED.Process(target=train, args=(folder, interval, Clock(until), args))
        process.start()
        process.join()
        if process.exitcode == 0:
            result = json.loads((folder / "result").read_text())
            result["seconds"] += passed
            return result | {"interruptions": interruptions}
        if process.exitcode != -signal.SIGKILL:
            raise RuntimeError(f"A job failed: exit status {process.exitcode}")
        passed += until
        interruptions += 1


class Clock:
    """A job's clock, in seconds since this attempt began. until: when the job is killed."""

    def __init__(self, until: float):
        self.seconds, self.until = 0.0, until

    def passes(self, seconds: float) -> None:
        """Let so much time pass; if an interruption falls into it, the process ends here."""
        self.seconds += seconds
        if self.seconds > self.until:
            os.kill(os.getpid(), signal.SIGKILL)


def train(folder: Path, interval: int, clock: Clock, args) -> None:
    """Train from the last checkpoint to the end; note how long it took, and the weights' hash."""
    checkpoint, partial = folder / "checkpoint", folder / "partial"
    weights, first = [0.0] * WIDTH, 0
    if checkpoint.exists():
        weights, first = pickle.loads(checkpoint.read_bytes())
    for step in range(first, args.steps):
        values = random.Random(step)  # a step's data follow from its number
        inputs = [values.uniform(-1, 1) for _ in weights]
        error = sum(weight * x for weight, x in zip(weights, inputs, strict=True)) - sum(inputs)
        weights = [weight - 0.01 * error * x for weight, x in zip(weights, inputs, strict=True)]
        clock.passes(args.step)
        if (step + 1) % interval == 0:
            partial.write_bytes(pickle.dumps((weights, step + 1)))
            clock.passes(args.write)
            partial.replace(checkpoint)
    hashed = hashlib.sha256(repr(weights).encode()).hexdigest()
    result = {"seconds": clock.seconds, "weights": hashed}
    (folder / "result").write_text(json.dumps(result))


if __name__ == "__main__":
    run_main(main)
