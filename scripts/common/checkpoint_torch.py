"""Checkpoints of a PyTorch run: what is kept, and how training goes on from there.

The weights alone would not do: SGD's momentum, the place in the epoch's order of the data and
the state of the random numbers belong to it, or the run that goes on is another run.
"""

import io
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from common.checkpoints import CheckpointFiles
from common.report import Report


class Checkpoints:
    """Goes on from the newest checkpoint, where there is one, and writes new ones on the way.

    Every rank makes one, after all it joined (join_ranks). Rank 0 alone reads and writes files;
    the others get what it read. A step counts the same with any number of ranks, so a run may
    go on with another number of them.

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
        self._ranks = dist.is_available() and dist.is_initialized()
        rank = dist.get_rank() if self._ranks else 0
        self._files = CheckpointFiles(args, "torch", rank)
        self._step, self._epoch, self._done, self._random = 0, 1, 0, None
        # Asked for alike on every rank: without a folder nobody sends anything.
        packed = None if args.checkpoint_dir is None else self._of_rank_0(rank)
        if packed is not None:
            self._go_on(torch.load(io.BytesIO(packed), map_location="cpu", weights_only=True))

    def batches(self, loader: DataLoader, epoch: int, steps: int) -> Iterator:
        """Yield the batches of an epoch of `steps` steps that are still to be trained on.

        The loop takes the next batch when it has trained on the one before: then that step is
        done, and a checkpoint is written if one is due.
        """
        if epoch < self._epoch:
            return  # it was all trained on before the checkpoint
        done = min(self._done, steps) if epoch == self._epoch else 0
        iterator = iter(loader)
        for _ in range(done):
            before = next(iterator)  # trained on before the checkpoint: in its place, and left
        if done:
            self._let_ddp_settle(before)
            set_random_state(self._random)
        for number in range(done + 1, steps + 1):
            yield next(iterator)
            self._step += 1
            if self._files.due(self._step, ends_epoch=number == steps):
                self._save(epoch, number)

    def _of_rank_0(self, rank: int) -> bytes | None:
        box = [self._files.latest() if rank == 0 else None]
        if self._ranks:
            dist.broadcast_object_list(box, src=0)
        return box[0]

    def _let_ddp_settle(self, batch) -> None:
        """Have DDP do now what it does between the first step of a run and the second.

        It then packs the gradients in the order in which they came. With three ranks or more
        another packing is another order of sums: the run that goes on would differ in the last
        bit, and after some hundred steps in the third decimal.
        """
        if self._ddp:
            device = next(self._model.parameters()).device
            self._ddp(batch[0].to(device)).sum().backward()
            self._optimizer.zero_grad()

    def _go_on(self, state: dict) -> None:
        self._model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._report.resume(state["report"])
        self._step, self._epoch, self._done = state["step"], state["epoch"], state["done"]
        self._random = state["random"]

    def _save(self, epoch: int, done: int) -> None:
        reported = self._report.progress()  # on every rank: it averages over them
        if not self._files.writes:
            return
        state = {
            "model": self._model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "report": reported,
            "step": self._step,
            "epoch": epoch,
            "done": done,  # steps of this epoch; the order itself follows from seed and epoch
            "random": random_state(),
        }
        packed = io.BytesIO()
        torch.save(state, packed)
        self._files.save(self._step, packed.getvalue())


def random_state() -> list[torch.Tensor]:
    """Return the state of torch's random numbers, on the CPU and on this process's GPU."""
    on_gpu = [torch.cuda.get_rng_state()] if torch.cuda.is_available() else []
    return [torch.get_rng_state(), *on_gpu]


def set_random_state(state: list[torch.Tensor]) -> None:
    """Go on with the random numbers of `state`; one from a machine without a GPU will do."""
    torch.set_rng_state(state[0])
    if torch.cuda.is_available() and len(state) > 1:
        torch.cuda.set_rng_state(state[1])
