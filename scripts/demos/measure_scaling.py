"""Measure what a training step gains from several ranks, and where its time goes.

    mpirun -np 2 python scripts/demos/measure_scaling.py --training data/digits-28/training

SageMaker: entry_point="measure_scaling.py", source_dir="scripts/demos", distribution={"mpi":
{"enabled": True, "processes_per_host": 2}}; with --library torch, torch_distributed too. Five
things are measured in rounds, each time in another order. Rank 0 prints a JSON line for the
configuration, and one for each round, in seconds per step, the median of its steps:

    {"event": "scaling", "library": "torch", "scaling": "strong", "world_size": 2, "instances": 1,
     "global_batch_size": 512, "local_batch_size": 256, "gradient_bytes": 423464, "steps": 4}
    {"event": "round", "alone": 0.21, "compute": [[0.10, 0.11, ...], [0.10, 0.10, ...]],
     "step": [0.11, 0.11], "again": [0.11, 0.11], "exchange": [0.002, 0.002]}

- alone: one process; the other ranks wait. It takes the whole global batch (strong scaling), or
  with --scaling weak as many images as each rank.
- compute: every rank for itself at the same time, nothing exchanged; rank by rank, step by step.
- step: the ranks average their gradients in every step. again: the same, measured once more: what
  lies between the two is noise.
- exchange: an all-reduce of as many bytes as the gradients have, and nothing else.

--global-batch-sizes 16,64 measures several, one after the other, each with a line for itself;
--steps 80 20 gives each its steps.
"""

import argparse
import random
import socket
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from common.arguments import add_flag, list_of, local_batch_size, number, parser_for
from common.data import load_channel
from common.errors import run_main
from common.report import emit

# In a round: the median of a few short exchanges would be the scheduler's; over a slow link a few
# are enough, and 20 would take longer than all steps.
EXCHANGES, EXCHANGE_SECONDS = 20, 0.5


@dataclass
class Library:
    """What a library gives to be measured. Functions without arguments run one step and end it.

    step(images, average): trains on so many images of this rank, with the ranks' mean gradient or
    this rank's own. exchange: an all-reduce of as many bytes as gradients have. gather: from this
    rank's value to the list of every rank's. finish: called last.
    """

    rank: int
    world_size: int
    gradient_bytes: int
    step: Callable[[int, bool], Callable[[], object]]
    exchange: Callable[[], object]
    gather: Callable[[object], list]
    finish: Callable[[], object]


def with_horovod(args: argparse.Namespace, images: np.ndarray, labels: np.ndarray) -> Library:
    """TensorFlow, and Horovod's average of the gradients."""
    from common.keras2 import tf  # before Horovod

    # isort: split
    import horovod.tensorflow as hvd

    from common.model_tf import build_model, build_optimizer, mean_loss, prepare

    hvd.init()
    prepare(args, hvd.local_rank(), hvd.local_size())

    def step(count: int, average: bool) -> Callable[[], float]:
        model = build_model(images.shape[1:], args.hidden_units)
        optimizer = build_optimizer(args.learning_rate, model)
        batch = tf.constant(rows(images, count)), tf.constant(rows(labels, count))

        @tf.function(autograph=False)  # Horovod's code needs no conversion: a second or two
        def train_step(images, labels):
            with tf.GradientTape() as tape:
                loss = mean_loss(model, images, labels)
            if average:
                tape = hvd.DistributedGradientTape(tape)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        return lambda: float(train_step(*batch))

    parameters = build_model(images.shape[1:], args.hidden_units).count_params()
    gradients = tf.zeros(parameters)
    return Library(
        rank=hvd.rank(),
        world_size=hvd.size(),
        gradient_bytes=4 * parameters,
        step=step,
        exchange=lambda: hvd.allreduce(gradients, name="exchange").numpy(),
        gather=hvd.allgather_object,
        finish=hvd.shutdown,
    )


def with_torch(args: argparse.Namespace, images: np.ndarray, labels: np.ndarray) -> Library:
    """PyTorch, and DistributedDataParallel's average of the gradients."""
    import torch
    import torch.distributed as dist
    from torch.nn.functional import cross_entropy
    from torch.nn.parallel import DistributedDataParallel

    from common.model_torch import Classifier, prepare
    from common.ranks_torch import cleanup, gather, init_distributed

    device = prepare(args, *init_distributed())
    gradients = torch.zeros(
        sum(p.numel() for p in Classifier(images.shape[1:], args.hidden_units).parameters()),
        device=device,
    )

    def step(count: int, average: bool) -> Callable[[], None]:
        model: torch.nn.Module = Classifier(images.shape[1:], args.hidden_units).to(device)
        if average:
            model = DistributedDataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)
        pixels = torch.from_numpy(rows(images, count)).to(device)
        answers = torch.from_numpy(rows(labels, count)).to(device)

        def train_step() -> None:
            optimizer.zero_grad()
            loss = cross_entropy(model(pixels), answers)
            loss.backward()
            optimizer.step()
            loss.item()  # waits for a GPU

        return train_step

    def exchange() -> None:
        dist.all_reduce(gradients)
        gradients[0].item()

    return Library(
        rank=dist.get_rank(),
        world_size=dist.get_world_size(),
        gradient_bytes=4 * len(gradients),
        step=step,
        exchange=exchange,
        gather=gather,
        finish=cleanup,
    )


def rows(values: np.ndarray, count: int) -> np.ndarray:
    """The first `count` values; from the start again where there are fewer."""
    return values[np.arange(count) % len(values)]


def seconds_by_step(library: Library, step: Callable, trains: bool, steps: int) -> list[float]:
    """Measure `steps` steps in a row on this rank; no steps on a rank that has to be silent."""
    if trains:
        step()  # not counted: a rank that was silent begins with cold caches
    library.gather(None)  # all begin together
    seconds = []
    if trains:
        for _ in range(steps):
            began = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - began)
    return seconds


def measure_round(
    library: Library, measurements: dict[str, Callable], steps: dict[str, int], order: list[str]
) -> dict[str, Any]:
    """Measure each of `order` once; return the round's record, the same on all ranks."""
    record: dict[str, Any] = {}
    for name in order:
        trains = name != "alone" or library.rank == 0
        by_rank = library.gather(seconds_by_step(library, measurements[name], trains, steps[name]))
        medians = [round(statistics.median(seconds or [0]), 6) for seconds in by_rank]
        if name == "alone":
            record["alone"] = medians[0]
        elif name == "compute":
            record["compute"] = [[round(value, 6) for value in seconds] for seconds in by_rank]
        else:
            record[name] = medians
    return record


def main() -> None:
    """Build the models, then measure in rounds; the first, which warms up, is not counted."""
    parser = parser_for(__file__, __doc__)
    positive = number(int, 1)
    add_flag(parser, "--library", choices=["tensorflow", "torch"], default="tensorflow")
    add_flag(parser, "--scaling", choices=["strong", "weak"], default="strong")
    of_each = "in one measurement: a number, or one for each global batch size"
    add_flag(parser, "--steps", type=positive, nargs="+", default=[4], help=of_each)
    add_flag(parser, "--rounds", type=positive, default=7, help="measurements of each")
    sizes, several = list_of(positive, "sizes"), "several, in place of --global-batch-size"
    add_flag(parser, "--global-batch-sizes", type=sizes, help=several)
    parser.set_defaults(global_batch_size=512, threads_per_rank=1)
    args = parser.parse_args()
    sizes = args.global_batch_sizes or [args.global_batch_size]
    steps_of_each = args.steps * len(sizes) if len(args.steps) == 1 else args.steps
    if len(steps_of_each) != len(sizes):
        parser.error(f"--steps: {len(args.steps)} numbers given for {len(sizes)} batch sizes")
    images, labels = load_channel(args.training)
    make = with_horovod if args.library == "tensorflow" else with_torch
    library = make(args, images, labels)
    for batch_size, steps in zip(sizes, steps_of_each, strict=True):
        measure(library, batch_size, steps, args)
    library.finish()


def measure(library: Library, batch_size: int, steps: int, args: argparse.Namespace) -> None:
    """Print a line for this batch size, and one for each round."""
    instances = len(set(library.gather(socket.gethostname())))
    local = local_batch_size(batch_size, library.world_size)
    averaged = library.step(local, True)
    measurements = {
        "alone": library.step(batch_size if args.scaling == "strong" else local, False),
        "compute": library.step(local, False),
        "step": averaged,
        "again": averaged,
        "exchange": library.exchange,
    }
    if library.rank == 0:
        emit(
            event="scaling",
            library=args.library,
            scaling=args.scaling,
            world_size=library.world_size,
            instances=instances,
            global_batch_size=batch_size,
            local_batch_size=local,
            gradient_bytes=library.gradient_bytes,
            steps=steps,
        )
    shuffled = random.Random(args.seed)  # the same order on every rank
    order = list(measurements)
    first = measure_round(library, measurements, dict.fromkeys(order, 1), order)
    in_time = int(EXCHANGE_SECONDS / max(*first["exchange"], 1e-6))
    counts = dict.fromkeys(order, steps) | {"exchange": max(steps, min(EXCHANGES, in_time))}
    for _ in range(args.rounds):
        shuffled.shuffle(order)
        record = measure_round(library, measurements, counts, order)
        if library.rank == 0:
            emit(event="round", **record)


if __name__ == "__main__":
    run_main(main)
