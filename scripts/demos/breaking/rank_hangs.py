"""Rank 0 waits for the others at a barrier; they wait for a file that it writes afterwards."""

import time
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist

from breaking.short import start
from common.ranks_torch import cleanup
from common.report import emit

PATIENCE = timedelta(seconds=6)  # PyTorch's own default is 30 minutes


def train(args) -> None:
    """Rank 0 prepares a file that every rank reads."""
    rank, _ = start(args)
    group = dist.new_group(timeout=PATIENCE)
    path = Path(args.save_to) / "prepared.txt"
    if rank == 0:
        if args.fixed:
            prepare(path)
        dist.barrier(group)
        if not args.fixed:
            prepare(path)  # too late: who waits for it never comes to the barrier
    else:
        wait_for(path)
        dist.barrier(group)
    emit(event="end", rank=rank, read=path.read_text())
    cleanup()


def prepare(path: Path) -> None:
    """Write the file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text("ready")
    partial.replace(path)


def wait_for(path: Path) -> None:
    """Wait until the file is there."""
    while not path.exists():
        time.sleep(0.05)
