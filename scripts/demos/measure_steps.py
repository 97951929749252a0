"""Measure training steps of models of several sizes, with DDP where there are several ranks.

    python scripts/demos/measure_steps.py --hidden-units 512,4096 --images 32,128
    mpirun -np 2 python scripts/demos/measure_steps.py --hidden-units 512 --images 64

SageMaker: entry_point="measure_steps.py", source_dir="scripts/demos", distribution={"mpi":
{"enabled": True, "processes_per_host": 2}}. Rank 0 prints JSON lines:

    {"event": "steps", "world_size": 2, "hidden_units": 512, "gradient_bytes": 1090088,
     "images": 64, "all_reduce": "default", "seconds": [...], "behind": [...],
     "card_bytes": 1740210}

images: of each rank's batch. all_reduce: DDP's communication hook (common/hooks_torch.py), or
"default again", the same configuration a second time: what differs between the two is noise.
seconds: of one step, by block, on the slowest rank; all are measured in rounds. behind: of them,
those after the largest gradient was ready, on rank 0. card_bytes: what the busiest instance's
network card sent in a step; null where the system keeps no such counts. The images are random
numbers: their values change nothing in the time. Each rank computes with one thread.
"""

import argparse
import itertools
import time

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

from collectives import tiers, timing
from collectives.timing import say
from common.arguments import add_flag, list_of, number, one_of, plain_parser
from common.data import CLASSES
from common.errors import run_main
from common.hooks_torch import NAMES, parallel, register
from common.model_torch import Classifier
from common.ranks_torch import cleanup, init_distributed

SIDE = 16  # pixels
POWERSGD_START = 2  # its first steps are ordinary ones


def arguments() -> argparse.Namespace:
    """Read the flags; lists are written with commas."""
    parser = plain_parser(__doc__)
    count = number(int, 1)
    counts, hooks = list_of(count, "counts"), list_of(one_of(NAMES, timing.AGAIN), "names")
    add_flag(parser, "--hidden-units", type=counts, default=[512, 4096], help="of each model")
    add_flag(parser, "--images", type=counts, default=[64], help="of each rank's batch")
    add_flag(parser, "--all-reduce", type=hooks, default=["default"], help="of several ranks")
    add_flag(parser, "--blocks", type=count, default=5, help="measurements of each")
    add_flag(parser, "--steps", type=count, default=3, help="in a row in each of them")
    return parser.parse_args()


def main() -> None:
    """Build each model, then time its steps, sizes and batches in turns."""
    args = arguments()
    init_distributed("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    cases = list(itertools.product(args.hidden_units, args.images, args.all_reduce))
    steps = {case: Step(*case) for case in cases}
    warm_up = max(args.steps, POWERSGD_START + 1)
    seconds = timing.in_turns(steps, args.steps, args.blocks, warm_up=warm_up)
    for case, step in steps.items():
        behind, cards = list(step.behind), tiers.card_bytes(step)
        card_bytes = max((sent for sent, _ in cards), default=None)
        units, images, all_reduce = case
        about = {"world_size": dist.get_world_size(), "hidden_units": units}
        about |= {"gradient_bytes": step.gradient_bytes, "images": images, "all_reduce": all_reduce}
        say(event="steps", **about, seconds=seconds[case], behind=behind, card_bytes=card_bytes)
    cleanup()


class Step:
    """Trains one step when it is called. behind: seconds after the largest gradient, by call."""

    def __init__(self, hidden_units: int, images: int, all_reduce: str) -> None:
        self.behind: list[float] = []
        self._ready = 0.0
        model = Classifier((SIDE, SIDE, 1), hidden_units)
        self.gradient_bytes = sum(4 * parameter.numel() for parameter in model.parameters())
        largest = max(model.parameters(), key=torch.Tensor.numel)
        largest.register_post_accumulate_grad_hook(self._largest_is_ready)
        self._model = under_ddp(model, all_reduce) if dist.get_world_size() > 1 else model
        self._optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
        self._pixels = torch.randint(256, (images, SIDE, SIDE, 1), dtype=torch.uint8)
        self._labels = torch.randint(CLASSES, (images,))

    def __call__(self) -> None:
        self._optimizer.zero_grad()
        cross_entropy(self._model(self._pixels), self._labels).backward()
        self.behind.append(round(time.perf_counter() - self._ready, 6))
        self._optimizer.step()

    def _largest_is_ready(self, _: torch.Tensor) -> None:
        self._ready = time.perf_counter()


def under_ddp(model: torch.nn.Module, all_reduce: str) -> torch.nn.Module:
    """Return the model under DDP with this hook."""
    # Of gloo's two threads each bucket's PowerSGD hook keeps one, waiting for an all-reduce that
    # needs the other: two buckets at a time wait for ever. So all gradients go into one.
    ddp_model = parallel(model, 1e6 if all_reduce == "powersgd" else None)
    register(ddp_model, all_reduce.removesuffix(timing.AGAIN), powersgd_start=POWERSGD_START)
    return ddp_model


if __name__ == "__main__":
    run_main(main)
