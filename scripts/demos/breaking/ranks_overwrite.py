"""Every rank saves its checkpoint to the same file."""

from pathlib import Path

import torch
import torch.distributed as dist

from breaking.parts import classifier, start
from common.ranks_torch import cleanup
from common.report import emit

SAVES = 200  # at most: it ends with the first broken file


def train(args) -> None:
    """Save, and read what was saved, until a file is broken."""
    rank, _ = start(args)
    model = classifier(args)
    Path(args.save_to).mkdir(parents=True, exist_ok=True)
    path = Path(args.save_to) / "checkpoint.pt"

    for step in range(1, SAVES + 1):
        state = {"rank": rank, "step": step, "model": model.state_dict()}
        if not args.fixed:
            torch.save(state, path)
        elif rank == 0:
            partial = path.with_suffix(".partial")
            torch.save(state, partial)
            partial.replace(path)  # at once: nobody ever sees half a file
        if args.fixed:
            dist.barrier()  # rank 0 has written
        error = error_of(path)
        if error:
            emit(event="broken", rank=rank, save=step, error=error)
        broken = torch.tensor(bool(error), dtype=torch.int64)
        dist.all_reduce(broken)  # every rank must leave the loop at the same step
        if broken:
            break
    emit(event="end", rank=rank, saves=step, broken=int(broken))
    cleanup()


def error_of(path: Path) -> str:
    """Return what PyTorch says of a file that it cannot load, else nothing."""
    try:
        torch.load(path, weights_only=True)
    except Exception as error:  # half a file is wrong in many ways
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""
