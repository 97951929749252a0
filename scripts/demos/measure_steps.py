"""Measure training steps of models of several sizes, with DDP where there are several ranks.

    python scripts/demos/measure_steps.py --hidden-units 512,4096 --images 32,128
    mpirun -np 2 python scripts/demos/measure_steps.py --hidden-units 512 --images 64

SageMaker: entry_point="measure_steps.py", source_dir="scripts/demos", distribution={"mpi":
{"enabled": True, "processes_per_host": 2}}. Rank 0 prints JSON lines:

    {"event": "steps", "world_size": 2, "hidden_units": 512, "gradient_bytes": 1090088,
     "images": 64, "seconds": [...]}

images: of each rank's batch. seconds: of one step, by block, on the slowest rank. The images are
random numbers: their values change nothing in the time. Each rank computes with one thread.
"""

import argparse

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from collectives import tiers, timing
from common.arguments import add_flag, number
from common.data import CLASSES
from common.errors import run_main
from common.model_torch import Classifier
from common.ranks_torch import cleanup, init_distributed
from common.report import emit

SIDE = 16  # pixels


def arguments() -> argparse.Namespace:
    """Read the flags; lists are written with commas."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    count = number(int, 1)
    add_flag(parser, "--hidden-units", type=_counts, default=[512, 4096], help="of each model")
    add_flag(parser, "--images", type=_counts, default=[64], help="of each rank's batch")
    add_flag(parser, "--blocks", type=count, default=5, help="measurements of each")
    add_flag(parser, "--steps", type=count, default=3, help="in a row in each of them")
    parser.add_argument("--model_dir", help="accepted because the SDK's estimator always sends it")
    return parser.parse_args()


def main() -> None:
    """Build each model, then time its steps, sizes and batches in turns."""
    args = arguments()
    init_distributed("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    cases = [(units, images) for units in args.hidden_units for images in args.images]
    steps = {case: make_step(*case) for case in cases}
    functions = {case: step for case, (step, _) in steps.items()}
    seconds = timing.in_turns(functions, args.steps, args.blocks, warm_up=args.steps)
    for (units, images), (_, gradient_bytes) in steps.items():
        slowest = [round(value, 6) for value in tiers.slowest(seconds[units, images])]
        about = {"world_size": dist.get_world_size(), "hidden_units": units}
        about |= {"gradient_bytes": gradient_bytes, "images": images}
        if dist.get_rank() == 0:
            emit(event="steps", **about, seconds=slowest)
    cleanup()


def make_step(hidden_units: int, images: int):
    """Return a function that trains one step, and the bytes of the gradients."""
    model = Classifier((SIDE, SIDE, 1), hidden_units)
    gradient_bytes = sum(4 * parameter.numel() for parameter in model.parameters())
    parallel = DistributedDataParallel(model) if dist.get_world_size() > 1 else model
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    pixels = torch.randint(256, (images, SIDE, SIDE, 1), dtype=torch.uint8)
    labels = torch.randint(CLASSES, (images,))

    def step() -> None:
        optimizer.zero_grad()
        cross_entropy(parallel(pixels), labels).backward()
        optimizer.step()

    return step, gradient_bytes


def _counts(text: str) -> list[int]:
    return [number(int, 1)(word.strip()) for word in text.split(",")]


_counts.__name__ = "counts"  # argparse says "invalid counts value"


if __name__ == "__main__":
    run_main(main)
