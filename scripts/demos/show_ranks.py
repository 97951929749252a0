"""The smallest program of several ranks: meet, add up one number, say who one is.

    torchrun --standalone --nproc-per-node 2 scripts/demos/show_ranks.py

It prints five of the dozen variables that torchrun sets: what a script needs to meet the others and
to choose a GPU.
"""

import os

import torch
import torch.distributed as dist

from common.ranks_torch import cleanup
from common.report import emit

VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "LOCAL_RANK")


def main() -> None:
    """Sum every rank's number plus one with an all-reduce, and print it with the variables."""
    dist.init_process_group("gloo")  # meets the others at MASTER_ADDR:MASTER_PORT
    total = torch.tensor(dist.get_rank() + 1)
    dist.all_reduce(total)
    emit(event="rank", sum=total.item(), **{name: os.environ[name] for name in VARIABLES})
    cleanup()


if __name__ == "__main__":
    main()
