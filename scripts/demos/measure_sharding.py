"""Measure what each rank holds and sends when the ranks divide a model among them.

    torchrun --nproc_per_node 2 scripts/demos/measure_sharding.py --ways ddp,zero1,zero3

SageMaker: entry_point="measure_sharding.py", source_dir="scripts/demos", distribution={"mpi":
{"enabled": True, "processes_per_host": 2}}. A small GPT (sharding/gpt.py) is trained with AdamW,
for a few steps in each way, always from the same weights and on the same text:

- ddp: every rank holds everything.
- zero1: the optimizer's state is divided (sharding/zero1.py).
- zero2: gradients too. fully_shard that keeps the gathered weights until backward has used them.
- zero3: weights too: fully_shard frees a block's weights when it has been computed.
- hsdp: zero3 among the ranks of an instance, and an all-reduce between instances.

Rank 0 prints a JSON line for each way, bytes of this rank alone:

    {"event": "sharding", "way": "zero3", "world_size": 4, "instances": 2, "model_bytes": 12915096,
     "weights": 3228774, "gradients": ..., "optimizer": ..., "held": ..., "peak": ...,
     "sent": {"all_gather": ..., ...}, "card_bytes": 39010222, "loss": 3.45,
     "weights_sha256": "...", "apart": 0.0}

weights, gradients, optimizer: bytes of these tensors after a step. held: of all tensors then, peak:
at most during the step. sent: of the tensors that a step gave to each kind of collective, as long
as all ranks have them together. card_bytes: what the busiest instance's network card sent in a
step; null on one instance. apart: the largest difference of a weight from the first way's.

Then a line with the seconds of a step on the slowest rank, by way and round, in rounds of random
order: {"event": "step_seconds", "ddp": [...], "ddp again": [...], "nothing exchanged": [...], ...}.
"""

import argparse
import functools
import gc
import socket
import warnings
from collections.abc import Iterable

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from collectives import tiers, timing
from collectives.timing import say
from common.arguments import add_flag, list_of, number, one_of, plain_parser
from common.errors import run_main
from common.ranks_torch import all_reduce_mean, cleanup, gather, init_distributed
from common.report import weights_hash
from sharding import gpt
from sharding.memory import TensorWatch, storage_bytes
from sharding.zero1 import Zero1

WAYS = ("ddp", "zero1", "zero2", "zero3", "hsdp")
AGAIN = "ddp again"  # the same, measured a second time: what differs is noise
ALONE = "nothing exchanged"  # every rank trains a model of its own
WARM_UP = 1  # step: it makes the optimizer's state


def adamw(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Return the optimizer of all ways. It holds two numbers for each weight."""
    return torch.optim.AdamW(parameters, lr=1e-3, foreach=False)


def build(way: str, args: argparse.Namespace, characters: int, ranks_here: int):
    """Return the model, what to call with a batch, the optimizer, and the groups that send."""
    world = [dist.group.WORLD]
    torch.manual_seed(0)
    model = gpt.GPT(characters, args.width, args.blocks)
    if way == ALONE:
        return model, model, adamw(model.parameters()), world
    if way in ("ddp", AGAIN):
        # The gradients are views of the buckets that travel: else both are held.
        parallel = DistributedDataParallel(model, gradient_as_bucket_view=True)
        return model, parallel, adamw(model.parameters()), world
    if way == "zero1":
        return model, model, Zero1(model, lambda part: adamw([part])), world
    instances = dist.get_world_size() // ranks_here
    shape = (instances, ranks_here) if way == "hsdp" else (dist.get_world_size(),)
    names = ("replicate", "shard")[-len(shape) :]
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    for module in (*model.blocks, model):
        fully_shard(module, mesh=mesh, reshard_after_forward=way != "zero2")
    return model, model, adamw(model.parameters()), mesh.get_all_groups()


def train_step(parallel: nn.Module, optimizer, text: torch.Tensor, args, step: int) -> torch.Tensor:
    """Train one step on this rank's part of a batch; return the mean loss of all ranks."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    x, y = gpt.batch(text, args.sequences, seed=step * world_size + rank)
    optimizer.zero_grad()
    loss = gpt.mean_loss(parallel, x, y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def measure(way: str, args: argparse.Namespace, text, characters: int, ranks_here: int):
    """Train in one way; return the record, and the weights. Every rank must call it."""
    with TensorWatch() as watch:
        model, parallel, optimizer, groups = build(way, args, characters, ranks_here)
        for step in range(WARM_UP):
            train_step(parallel, optimizer, text, args, step)
        gc.collect()
        watch.peak = 0
        watch.sent.clear()
        steps: list[tuple[float, dict]] = []

        def watched_step() -> None:
            loss = train_step(parallel, optimizer, text, args, WARM_UP).item()
            steps.append((loss, dict(watch.sent)))

        cards = tiers.card_bytes(watched_step)
    ((loss, sent),) = steps
    release_sent_tensors(groups)
    tensors = held_tensors(model, optimizer) | {"held": watch.held_bytes(), "peak": watch.peak}
    weights = whole_weights(model)
    record = {
        "model_bytes": sum(4 * parameter.numel() for parameter in model.parameters()),
        **tensors,
        "sent": sent,
        "card_bytes": max((sent for sent, _ in cards), default=None),
        "loss": round(all_reduce_mean(loss), 6),
        "weights_sha256": weights_hash(weights),
    }
    return record, weights


def step_seconds(args: argparse.Namespace, text, characters: int, ranks_here: int) -> dict:
    """Time a step in each way, in rounds; return seconds on the slowest rank, by round."""
    steps = {}
    for way in (*args.ways, AGAIN, ALONE):
        _, parallel, optimizer, _ = build(way, args, characters, ranks_here)
        # The same batch each time: its characters change nothing in the time.
        steps[way] = functools.partial(train_step, parallel, optimizer, text, args, step=0)
    seconds = timing.in_turns(steps, 1, args.rounds, warm_up=WARM_UP)
    return {way: [round(value, 6) for value in values] for way, values in seconds.items()}


def release_sent_tensors(groups: list[dist.ProcessGroup]) -> None:
    """Make gloo let go of what was sent: each of its threads keeps that until it sends again."""
    for group in groups:
        small = [dist.all_reduce(torch.zeros(1), group=group, async_op=True) for _ in range(32)]
        for work in small:
            work.wait()


def held_tensors(model: nn.Module, optimizer) -> dict[str, int]:
    """Return the bytes of this rank's weights, gradients and optimizer state."""
    inner = optimizer.optimizer if isinstance(optimizer, Zero1) else optimizer
    state = [value for values in inner.state.values() for value in values.values()]
    gradients = [parameter.grad for parameter in model.parameters()]
    if isinstance(optimizer, Zero1):
        gradients.append(optimizer.part.grad)
    return {
        "weights": storage_bytes(model.parameters()),
        "gradients": storage_bytes(gradients),
        "optimizer": storage_bytes(state),
    }


def whole_weights(model: nn.Module) -> list[np.ndarray]:
    """Return the weights, whole. Every rank must call it: shards are put together."""
    parameters = (p.full_tensor() if isinstance(p, DTensor) else p for p in model.parameters())
    return [parameter.detach().numpy() for parameter in parameters]


def main() -> None:
    """Measure each way, one after the other."""
    parser = plain_parser(__doc__)
    positive = number(int, 1)
    add_flag(parser, "--ways", type=list_of(one_of(WAYS), "names"), default="ddp,zero1,zero2,zero3")
    add_flag(parser, "--width", type=positive, default=256, help="of the GPT; a multiple of 4")
    add_flag(parser, "--blocks", type=positive, default=4, help="of the GPT")
    add_flag(parser, "--sequences", type=positive, default=4, help="of each rank's batch")
    add_flag(parser, "--rounds", type=number(int, 0), default=5, help="of timing; 0: none")
    args = parser.parse_args()
    # PyTorch 2.13 has new names for reduce_scatter_tensor and all_gather_into_tensor; 2.6 has not.
    warnings.filterwarnings("ignore", ".*is deprecated", FutureWarning)
    _, ranks_here = init_distributed("gloo")
    torch.set_num_threads(1)
    instances = len(set(gather(socket.gethostname())))
    about = {"world_size": dist.get_world_size(), "instances": instances}
    text, characters = gpt.load_text()
    first: list[np.ndarray] = []
    for way in args.ways:
        record, weights = measure(way, args, text, characters, ranks_here)
        first = first or weights
        apart = max(float(np.abs(a - b).max()) for a, b in zip(weights, first, strict=True))
        say(event="sharding", way=way, **about, **record, apart=apart)
        gc.collect()
    if args.rounds:
        say(event="step_seconds", **step_seconds(args, text, characters, ranks_here))
    cleanup()


if __name__ == "__main__":
    run_main(main)
