"""Measure ways to train that send less: what is learned, what is sent, how long a step takes.

    torchrun --nproc_per_node 2 scripts/demos/measure_less_often.py --train DDP,DiLoCo --time DDP

SageMaker: entry_point="measure_less_often.py", source_dir="scripts/demos", distribution={"mpi":
{"enabled": True, "processes_per_host": 1}}. A small GPT (sharding/gpt.py) learns Python's help
pages in the ways of less_often/methods.py. First each way of --train trains with each of --seeds,
of the weights and the batches; then the steps of the ways of --time are timed in rounds. "DDP
again" is a second DDP: what differs between the two is noise. Rank 0 prints JSON lines:

    {"event": "model", "world_size": 2, "gradient_bytes": 469916, "batch": 128}
    {"event": "trained", "method": "DDP", "seed": 0, "steps": [0, 16, ...], "losses": [4.7, ...],
     "sent_bytes": [...], "models": 1, "weights_sha256": "..."}
    {"event": "timed", "method": "DDP", "seconds": [...]}

batch: characters in a step of all ranks. losses: of text that nobody trains on, after so many
steps. sent_bytes: what each rank's network card sent from the first step to the last (0 where the
ranks share a machine). models: how many different sets of weights the ranks hold at the end.
seconds: of a step, by round, on the slowest rank; of "alone", where nobody waits for anybody, the
mean of the ranks.
"""

import argparse
import itertools
import math
from functools import partial

import torch
import torch.distributed as dist
from torch import nn

from collectives import tiers, timing
from collectives.timing import say
from common.arguments import add_flag, list_of, number, one_of, plain_parser
from common.errors import run_main
from common.model_torch import weights_of
from common.ranks_torch import all_reduce_mean, cleanup, gather, init_distributed
from common.report import weights_hash
from less_often.methods import METHODS, Batches, Steps
from sharding import gpt

TEST_SEQUENCES = 64
STEPS = 1  # taken at a time, of ways that send in every step
BLOCK_SECONDS = 0.1  # of a round, at least: far above the moment by which ranks begin apart


def arguments() -> argparse.Namespace:
    """Read the flags; lists are written with commas."""
    parser = plain_parser(__doc__)
    positive, names = number(int, 1), list_of(one_of(METHODS, timing.AGAIN), "names")
    add_flag(parser, "--train", type=names, default=[], help=f"of {', '.join(METHODS)}")
    add_flag(parser, "--time", type=names, default=[], help="the same, and NAME again")
    add_flag(parser, "--seeds", type=list_of(number(int, 0), "seeds"), default=[0])
    add_flag(parser, "--steps", type=positive, default=192, help="of each training")
    add_flag(parser, "--evaluate-every", type=positive, default=16, help="steps")
    add_flag(parser, "--rounds", type=positive, default=9, help="measurements of each step")
    add_flag(parser, "--sequences", type=positive, default=1, help="of each rank's batch")
    add_flag(parser, "--width", type=positive, default=64, help="of the GPT; a multiple of 4")
    add_flag(parser, "--learning-rate", type=number(float, 0), default=4e-3)
    return parser.parse_args()


class Task:
    """What all ways have in common: the model, the text and how much of it a rank sees."""

    def __init__(self, args: argparse.Namespace) -> None:
        text, self.characters = gpt.load_text()
        cut = 9 * len(text) // 10
        self.args, self.rank, self.world_size = args, dist.get_rank(), dist.get_world_size()
        self.training = text[:cut]
        x, y = gpt.batch(text[cut:], TEST_SEQUENCES, seed=0)
        self.test = x[self.rank :: self.world_size], y[self.rank :: self.world_size]

    def start(self, method: str, seed: int) -> tuple[nn.Module, Steps]:
        """Return a model of this seed, and the steps that train it."""
        torch.manual_seed(seed)
        model = gpt.GPT(self.characters, self.args.width, blocks=2)
        optimizer = torch.optim.AdamW(model.parameters(), self.args.learning_rate)
        return model, _named(method)(model, optimizer, self.batches(seed))

    def batches(self, seed: int) -> Batches:
        """Give this rank's batches, without end: others with another seed, and on other ranks."""
        for step in itertools.count():
            number = seed * 1_000_000 + step * self.world_size + self.rank
            yield gpt.batch(self.training, self.args.sequences, number)

    def train(self, method: str, seed: int) -> dict:
        """Train to the end; return the record. Every rank must call it."""
        model, steps = self.start(method, seed)
        losses = {0: self.test_loss(model)}

        def all_steps() -> None:
            for step in range(1, self.args.steps + 1):
                next(steps)
                if step % self.args.evaluate_every == 0:
                    losses[step] = self.test_loss(model)

        passed = tiers.card_bytes(all_steps)
        hashes = gather(weights_hash(weights_of(model)))
        record = {"steps": list(losses), "losses": [round(loss, 6) for loss in losses.values()]}
        record |= {"sent_bytes": [sent for sent, _ in passed], "models": len(set(hashes))}
        return {"method": method, "seed": seed, **record, "weights_sha256": hashes[0]}

    @torch.no_grad()
    def test_loss(self, model: nn.Module) -> float:
        """Return the mean loss on text that nobody trains on; each rank looks at a part of it."""
        return all_reduce_mean(gpt.mean_loss(model, *self.test).item())

    def time(self, methods: list[str]) -> None:
        """Time steps of each in rounds, and print their records. Every rank must call it."""
        functions, counts = {}, {}
        for method in methods:
            _, steps = self.start(method, 0)
            counts[method] = _named(method).keywords.get("every", STEPS)
            functions[method] = partial(take, steps, counts[method])
        first = timing.in_turns(functions, 1, 1, warm_up=2)
        for method, function in functions.items():
            periods = math.ceil(BLOCK_SECONDS / first[method][0])
            counts[method] *= periods
            functions[method] = partial(take, function.args[0], counts[method])
        alone = [method for method in methods if method.removesuffix(timing.AGAIN) == "alone"]
        measured = timing.in_turns(functions, 1, self.args.rounds, warm_up=0, apart=alone)
        for method in methods:
            seconds = [value / counts[method] for value in measured[method]]
            say(event="timed", method=method, seconds=seconds)


def take(steps: Steps, count: int) -> None:
    """Take so many steps."""
    for _ in range(count):
        next(steps)


def _named(method: str) -> partial:
    return METHODS[method.removesuffix(timing.AGAIN)]


def main() -> None:
    """Train, then time."""
    args = arguments()
    init_distributed("gloo")
    torch.set_num_threads(1)
    task = Task(args)
    model, _ = task.start("DDP", 0)
    n_bytes = sum(4 * weight.numel() for weight in model.parameters())
    characters = task.world_size * args.sequences * gpt.CONTEXT
    say(event="model", world_size=task.world_size, gradient_bytes=n_bytes, batch=characters)
    for seed, method in itertools.product(args.seeds, args.train):
        say(event="trained", **task.train(method, seed))
    task.time(args.time)
    cleanup()


if __name__ == "__main__":
    run_main(main)
