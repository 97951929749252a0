"""Checkpoints of a PyTorch run, and how training resumes from one.

The weights alone would not do: SGD's momentum, the place in the epoch's order of the data and
the state of the random numbers belong to it, or the resumed run is another run.
"""

import os
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from common.checkpoints import KEEP, CheckpointFolder
from common.report import Report


class Checkpoints:
    """Resumes from the newest checkpoint, if there is one, and writes new ones on the way.

    Every rank makes one, after all it joined (join_ranks). Rank 0 alone reads and writes files;
    the others get what it read. A step counts the same with any number of ranks, so a run may
    resume with another number of them.

    Args:
        args: the script's arguments.
        model: the model, or DDP around it; the model's weights become the checkpoint's.
        optimizer: of the model.
        report: of the run; its losses become the checkpoint's.
    """

    def __init__(
        self, args, model: nn.Module, optimizer: torch.optim.Optimizer, report: Report
    ) -> None:
        self._ddp = model if isinstance(model, DistributedDataParallel) else None
        self._model = model.module if self._ddp else model
        self._optimizer, self._report = optimizer, report
        ranks = dist.is_available() and dist.is_initialized()
        self._rank = dist.get_rank() if ranks else 0
        shapes = [weight.shape for weight in self._model.state_dict().values()]
        self._folder = CheckpointFolder(args, "torch", shapes)
        self._at = {"step": 0, "epoch": 1, "epoch_steps": 0}
        if args.checkpoint_dir is None:
            return
        state = [self._folder.load(self._files(), _read) if self._rank == 0 else None]
        if ranks:
            dist.broadcast_object_list(state, src=0)
        if state[0]:
            self._resume(state[0])

    def batches(self, loader: DataLoader, epoch: int, steps: int) -> Iterator:
        """Yield the batches of an epoch of `steps` steps that are still to be trained on.

        The loop takes the next batch when it has trained on the one before: then that step is
        done, and a checkpoint is written if one is due.
        """
        if epoch < self._at["epoch"]:
            return  # it was all trained on before the checkpoint
        done = min(self._at["epoch_steps"], steps) if epoch == self._at["epoch"] else 0
        iterator = iter(loader)
        for _ in range(done):
            batch = next(iterator)  # trained on before the checkpoint: in its place, and left
        if done:
            self._let_ddp_settle(batch)
            set_random_state(self._random)
        for number in range(done + 1, steps + 1):
            yield next(iterator)
            self._at["step"] += 1
            if self._folder.due(self._at["step"], ends_epoch=number == steps):
                self._save()

    def _let_ddp_settle(self, batch) -> None:
        """Have DDP do now what it does between the first step of a run and the second.

        It then packs the gradients in the order in which they came. With three ranks or more
        another packing is another order of sums: the resumed run would differ in the last
        bit, and after some hundred steps in the third decimal.
        """
        if self._ddp:
            device = next(self._model.parameters()).device
            self._ddp(batch[0].to(device)).sum().backward()
            self._optimizer.zero_grad()

    def _resume(self, state: dict) -> None:
        self._model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._report.resume(state["progress"])
        self._at, self._random = state["progress"], state["random"]

    def _save(self) -> None:
        progress = self._report.progress()  # on every rank: it averages over them
        state = {
            "model": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "progress": progress,  # the data's order itself follows from seed and epoch
            "random": random_state(),
        }
        if self._rank == 0:
            self._folder.save(progress["step"], lambda: self._write(state))

    def _write(self, state: dict) -> None:
        """Write a file that is there whole or not at all; keep the newest KEEP."""
        partial = self._folder.path / "partial"
        with open(partial, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())  # before the rename: else the name could come first
        os.replace(partial, self._folder.path / f"step-{state['progress']['step']:09d}.pt")
        for old in self._files()[KEEP:]:
            old.unlink()

    def _files(self) -> list:
        """Return all checkpoints, newest first."""
        return sorted(self._folder.path.glob("step-*.pt"), reverse=True)


def _read(path) -> dict:
    return torch.load(path, map_location="cpu", weights_only=True)


def random_state() -> list[torch.Tensor]:
    """Return the state of torch's random numbers, on the CPU and on this process's GPU."""
    on_gpu = [torch.cuda.get_rng_state()] if torch.cuda.is_available() else []
    return [torch.get_rng_state(), *on_gpu]


def set_random_state(state: list[torch.Tensor]) -> None:
    """Continue the random numbers of `state`; one from a machine without a GPU will do."""
    torch.set_rng_state(state[0])
    if torch.cuda.is_available() and len(state) > 1:
        torch.cuda.set_rng_state(state[1])
