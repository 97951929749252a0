"""Show where a step of DistributedDataParallel goes: computing, sending, and both at once.

    torchrun --standalone --nproc_per_node 2 scripts/demos/show_overlap.py

SageMaker: PyTorch(entry_point="show_overlap.py", source_dir="scripts/demos",
dependencies=["scripts/train/train_torch_fsdp.py"], instance_count=2, distribution={"mpi": ...}).
The model is that file's, with 12 residual blocks (104 tensors, 57 MB), on random images. Lines:

    {"event": "bucket", "bucket": 0, "tensors": [[name, bytes], ...]}                 (rank 0)
    {"event": "steps", "setting": "DDP's buckets", "seconds": [...]}                  (rank 0)
    {"event": "span", "setting": ..., "rank": 0, "kind": "backward", "start_ms": ..., "ms": ...}

Settings are measured in rounds: "forward only"; "computing only" (no all-reduce); "sending only"
(an all-reduce of the same bytes, no computing); "one bucket" (sent when backward() is over); "DDP's
buckets"; and, for each limit in --bucket-megabytes, "buckets of 5 MiB" (the first one, too).
seconds: of one step, by block, on the slowest rank. Spans are torch.profiler's, of the fastest
step of three: other programs can only add time.
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from collectives import timing
from collectives.timing import say
from common.arguments import add_flag, list_of, number, plain_parser
from common.errors import run_main
from common.hooks_torch import parallel
from common.ranks_torch import cleanup, init_distributed
from common.report import emit

sys.path.append(str(Path(__file__).resolve().parents[1] / "train"))  # in a job it lies beside
from train_torch_fsdp import Classifier

FORWARD, COMPUTE, SEND = "forward only", "computing only", "sending only"
ONE_BUCKET, BUCKETS = "one bucket", "DDP's buckets"
SPANS = {
    "DistributedDataParallel.forward": "forward",
    "backward": "backward",
    "gloo:all_reduce": "all-reduce",
    "nccl:all_reduce": "all-reduce",
}
COMPUTED = "autograd::engine::evaluate_function"


def arguments() -> argparse.Namespace:
    """Read the flags."""
    parser = plain_parser(__doc__)
    add_flag(parser, "--local-batch-size", type=number(int, 1), default=32, help="images a rank")
    add_flag(parser, "--blocks", type=number(int, 1), default=5, help="steps of each setting")
    sizes = list_of(number(float, 0), "sizes")
    explained = "further limits of a bucket, MiB, with commas"
    parser.add_argument("--bucket-megabytes", type=sizes, default=[], help=explained)
    return parser.parse_args()


def main() -> None:
    """Measure all settings alternately; then one step of each training under the profiler."""
    args = arguments()
    local_rank, _ = init_distributed()
    torch.set_num_threads(1)
    own_gpu = dist.get_backend() == "nccl"
    device = torch.device("cuda", local_rank) if own_gpu else torch.device("cpu")
    torch.manual_seed(0)  # the same weights on every rank
    models = {ONE_BUCKET: ddp(device, 1000), BUCKETS: ddp(device)}
    models |= {f"buckets of {size:g} MiB": ddp(device, size) for size in args.bucket_megabytes}
    torch.manual_seed(dist.get_rank())
    shape = (args.local_batch_size, 8, 8, 1)
    images = torch.randint(256, shape, dtype=torch.uint8).to(device)
    labels = torch.randint(10, shape[:1]).to(device)
    gradients = torch.zeros(sum(p.numel() for p in models[BUCKETS].parameters()), device=device)

    def forward(setting: str, synchronise: bool) -> torch.Tensor:
        models[setting].require_backward_grad_sync = synchronise  # what DDP's no_sync() sets
        return cross_entropy(models[setting](images), labels)

    def train(setting: str, synchronise: bool = True) -> None:
        loss = forward(setting, synchronise)
        with torch.profiler.record_function("backward"):
            loss.backward()
        models[setting].zero_grad()

    settings: dict[str, Callable[[], object]] = {
        FORWARD: lambda: forward(BUCKETS, synchronise=False),
        COMPUTE: lambda: train(BUCKETS, synchronise=False),
        SEND: lambda: dist.all_reduce(gradients),
        **{name: partial(train, name) for name in models},
    }
    # Two first calls: DDP orders its buckets anew after the first step.
    for setting, seconds in timing.in_turns(settings, 1, args.blocks, warm_up=2).items():
        say(event="steps", setting=setting, seconds=seconds)
    for setting in (ONE_BUCKET, BUCKETS):
        show_spans(setting, settings[setting])
    show_buckets(models[BUCKETS], lambda: train(BUCKETS))
    cleanup()


def ddp(device: torch.device, bucket_megabytes: float | None = None) -> DistributedDataParallel:
    """Return the deep model for 8 x 8 grey images, whose gradients DDP averages."""
    return parallel(Classifier((8, 8, 1), 64, channels=256, blocks=12).to(device), bucket_megabytes)


def show_spans(setting: str, step: Callable) -> None:
    """Print what the profiler saw, on every rank, of the fastest step of three."""
    profiles, seconds = [], []
    for _ in range(3):
        dist.barrier()
        began = time.perf_counter()
        with torch.profiler.profile() as profile:
            step()
        seconds.append(time.perf_counter() - began)
        profiles.append(profile)
    slowest = timing.slowest(seconds)  # the same on every rank, so all choose the same step
    events = profiles[slowest.index(min(slowest))].events()
    spans = [event for event in events if event.name in SPANS]
    first = min(event.time_range.start for event in spans)
    # backward() returns when the last bucket has arrived. It computes until its last function ends.
    ends = [event.time_range.end for event in events if event.name.startswith(COMPUTED)]
    for event in spans:
        start, end = event.time_range.start - first, event.time_range.end - first  # microseconds
        if event.name == "backward":
            end = max(ends) - first
        span = {"kind": SPANS[event.name], "start_ms": start / 1000, "ms": (end - start) / 1000}
        emit(event="span", setting=setting, rank=dist.get_rank(), **span)


def show_buckets(model: DistributedDataParallel, step: Callable) -> None:
    """Print which tensors share a bucket: what DDP hands to its communication hook."""
    names = {id(parameter): name for name, parameter in model.module.named_parameters()}

    def hook(state, bucket):
        tensors = [(names[id(p)], 4 * p.numel()) for p in bucket.parameters()]
        say(event="bucket", bucket=bucket.index(), tensors=tensors)
        return default_hooks.allreduce_hook(state, bucket)

    model.register_comm_hook(dist.group.WORLD, hook)
    step()


if __name__ == "__main__":
    run_main(main)
