"""What the scripts with a mistake share: none of it is a mistake."""

import os
from collections.abc import Iterator
from datetime import timedelta

import torch
import torch.distributed as dist

from common.data import load_channel
from common.model_torch import Classifier
from common.ranks_torch import init_distributed
from common.report import emit

IMAGE = (8, 8, 1)  # height, width, channels of the digits


def start(args, timeout: timedelta | None = None) -> tuple[int, int]:
    """Join the other ranks over gloo; return (rank, world_size)."""
    init_distributed("gloo", timeout)
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    emit(event="rank", rank=rank, pid=os.getpid())
    return rank, world_size


def classifier(args) -> Classifier:
    """Return a new model for the digits."""
    return Classifier(IMAGE, args.hidden_units)


def sgd(model: torch.nn.Module, learning_rate: float) -> torch.optim.Optimizer:
    """Return plain SGD."""
    return torch.optim.SGD(model.parameters(), learning_rate)


def batches(args, rank: int, world_size: int, steps: int) -> Iterator[tuple]:
    """Yield this rank's part of the first `steps` global batches: images and labels, tensors."""
    images, labels = map(torch.from_numpy, load_channel(args.training))
    for step in range(steps):
        part = slice(
            step * args.global_batch_size + rank, (step + 1) * args.global_batch_size, world_size
        )
        yield images[part], labels[part]
