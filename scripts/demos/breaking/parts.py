"""What the scripts with a mistake share: none of it is a mistake."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist

from common.ranks_torch import init_distributed
from common.report import emit


def start(args, timeout: timedelta | None = None) -> tuple[int, int]:
    """Join the other ranks over gloo; return (rank, world_size)."""
    init_distributed("gloo", timeout)
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    emit(event="rank", rank=rank, pid=os.getpid())
    return rank, world_size
