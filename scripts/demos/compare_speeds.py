"""Compare the speeds of one process, of two independent ones, and of two ranks that average.

    mpirun -np 2 python scripts/demos/compare_speeds.py --batch-size 256 --library torch

The three are measured in rounds, A B C, A B C; while one process is measured, the other waits.
After each round but the first, which warms up, rank 0 prints a JSON line, in images per second of
all processes that trained:

    {"event": "speeds", "one process": 8000, "two independent": 15000, "two ranks": 14000}
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from common.arguments import add_flag, number, parser_for
from common.data import load_channel
from common.errors import run_main
from common.report import emit

ONE, INDEPENDENT, RANKS = "one process", "two independent", "two ranks"


@dataclass
class Library:
    """What a library gives: this rank's number, one step of each kind, and every rank's value."""

    rank: int
    step_alone: Callable[[], object]
    step_together: Callable[[], object]
    gather: Callable[[object], list]


def with_horovod(args, images: np.ndarray, labels: np.ndarray) -> Library:
    """TensorFlow, and Horovod's average of the gradients."""
    from common.keras2 import tf  # before Horovod

    # isort: split
    import horovod.tensorflow as hvd

    from common.model_tf import build_model, build_optimizer, mean_loss, prepare

    hvd.init()
    prepare(args)
    batch = tf.constant(images), tf.constant(labels)

    def step(average: bool) -> Callable[[], float]:
        model = build_model(images.shape[1:], args.hidden_units)
        optimizer = build_optimizer(args.learning_rate, model)

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

    return Library(hvd.rank(), step(average=False), step(average=True), hvd.allgather_object)


def with_torch(args, images: np.ndarray, labels: np.ndarray) -> Library:
    """PyTorch, and DistributedDataParallel's average."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    from common.model_torch import Classifier, prepare
    from common.ranks_torch import init_distributed

    device = prepare(args)
    init_distributed("gloo")
    batch = torch.from_numpy(images).to(device), torch.from_numpy(labels).to(device)

    def step(average: bool) -> Callable[[], None]:
        model: torch.nn.Module = Classifier(images.shape[1:], args.hidden_units).to(device)
        if average:
            model = DistributedDataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)

        def train_step() -> None:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(batch[0]), batch[1]).backward()
            optimizer.step()

        return train_step

    def gather(value: object) -> list:
        values: list = [None] * dist.get_world_size()
        dist.all_gather_object(values, value)
        return values

    return Library(dist.get_rank(), step(average=False), step(average=True), gather)


def images_per_second(library: Library, way: str, steps: int, batch_size: int) -> float:
    """Measure one of the three ways; the sum over the ranks that train, on every rank."""
    step = library.step_together if way == RANKS else library.step_alone
    library.gather(None)  # all begin together
    seconds = None
    if way != ONE or library.rank == 0:
        began = time.perf_counter()
        for _ in range(steps):
            step()
        seconds = time.perf_counter() - began
    return sum(steps * batch_size / took for took in library.gather(seconds) if took)


def main() -> None:
    """Build both models, then measure the three ways in rounds."""
    parser = parser_for(__file__, __doc__)
    positive = number(int, 1)
    add_flag(parser, "--batch-size", type=positive, default=256, help="images of each process")
    add_flag(parser, "--steps", type=positive, default=4, help="in one measurement")
    add_flag(parser, "--rounds", type=positive, default=7, help="measurements of each")
    add_flag(parser, "--library", choices=["tensorflow", "torch"], default="tensorflow")
    args = parser.parse_args()
    images, labels = load_channel(args.training)
    rows = np.arange(args.batch_size) % len(labels)  # the same images again, if need be
    make = with_horovod if args.library == "tensorflow" else with_torch
    library = make(args, images[rows], labels[rows])
    for round_number in range(args.rounds + 1):
        speeds = {
            way: images_per_second(library, way, args.steps, args.batch_size)
            for way in (ONE, INDEPENDENT, RANKS)
        }
        if round_number and library.rank == 0:
            emit(event="speeds", **speeds)


if __name__ == "__main__":
    run_main(main)
