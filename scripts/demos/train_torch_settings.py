"""Train a model of equal layers by DDP; settings, which the environment names, make it slow.

    JOB_SETTINGS='{"late_rank": 1}' torchrun --standalone --nproc_per_node 2 \\
        scripts/demos/train_torch_settings.py

The settings are no arguments because an exercise of lesson 10 has the learner find them, and a
job's record shows the words of its command. It trains for about `--seconds`.
"""

import json
import os
import socket
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from breaking.short import Rows
from common.arguments import number, plain_parser
from common.errors import ScriptError, run_main
from common.ranks_torch import cleanup, init_distributed
from common.report import emit

LAYERS, WIDTH = 60, 112  # 3 MB of weights
WARM_UP, MIN_STEPS, MAX_STEPS = 4, 12, 400  # steps
PACING = 47  # SO_MAX_PACING_RATE of Linux, which Python's socket does not name
# What makes a job slow takes so many of its plain steps: as clear on a busy machine as on a fast.
STEPS_LOST = 3


@dataclass
class Settings:
    """What may make a job slow; a rank of -1 is none.

    batch: examples of a rank and step. input_rank: this rank's data come slowly. late_rank: this
    rank writes a log after each step. bucket_mb: DDP's bucket_cap_mb. narrow: the links are.
    """

    batch: int = 64
    input_rank: int = -1
    late_rank: int = -1
    bucket_mb: float = 25.0
    narrow: bool = False


def limit_links(bytes_per_second: float) -> None:
    """Let the kernel send no faster than this on any TCP connection of this process."""
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        try:
            connection = socket.socket(fileno=os.dup(descriptor))
        except OSError:
            continue  # a file, or closed meanwhile
        with connection:
            if connection.family in (socket.AF_INET, socket.AF_INET6):
                connection.setsockopt(socket.SOL_SOCKET, PACING, int(bytes_per_second))


def write_log(seconds: float) -> None:
    """Stand for what only one rank does: a log to a slow disk."""
    time.sleep(seconds)


def read_settings() -> Settings:
    """Return what JOB_SETTINGS says."""
    try:
        return Settings(**json.loads(os.environ.get("JOB_SETTINGS", "{}")))
    except (ValueError, TypeError) as error:
        raise ScriptError(f"JOB_SETTINGS is no dictionary of settings: {error}") from error


def main() -> None:
    """Train, the same number of steps on every rank."""
    parser = plain_parser(__doc__)
    parser.add_argument("--seconds", type=number(float, 0), default=3.0)
    args, settings = parser.parse_args(), read_settings()
    torch.set_num_threads(1)
    init_distributed("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    layers = [layer for _ in range(LAYERS) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    alone = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(alone.parameters(), 0.01)
    rows = Rows(1 << 24, WIDTH)
    rows_of_rank = range(rank, len(rows), dist.get_world_size())
    batches = iter(DataLoader(rows, settings.batch, sampler=rows_of_rank))

    def train(model: nn.Module, steps: int, log_seconds: float = 0.0) -> float:
        """Train so many steps; return the seconds of one."""
        began = time.perf_counter()
        for _ in range(steps):
            loss = model(next(batches)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if log_seconds:
                write_log(log_seconds)
        return (time.perf_counter() - began) / steps

    # Before DDP: it times its first steps, and they are to be like the rest.
    train(alone, WARM_UP)
    plain = torch.tensor([train(alone, WARM_UP)])
    dist.broadcast(plain, src=0)  # all must take equally many steps
    model = DistributedDataParallel(alone, bucket_cap_mb=settings.bucket_mb)
    lost = STEPS_LOST * plain.item()
    if rank == settings.input_rank:
        rows.seconds = lost / settings.batch
    if settings.narrow:
        limit_links(sum(p.nbytes for p in alone.parameters()) / lost)
    slow = settings.narrow or settings.input_rank >= 0 or settings.late_rank >= 0
    steps = int(args.seconds / (plain.item() + lost * slow))
    steps = min(max(steps, MIN_STEPS), MAX_STEPS)
    seconds = train(model, steps, lost if rank == settings.late_rank else 0.0)
    emit(
        event="end",
        rank=rank,
        steps=steps,
        batch=settings.batch,
        examples_per_second=settings.batch / seconds,
    )
    cleanup()


if __name__ == "__main__":
    run_main(main)
