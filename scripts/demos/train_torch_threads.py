"""Train as DataParallel does, with threads in the place of GPUs: each batch in two parts.

    python scripts/demos/train_torch_threads.py

The flags are those of scripts/train/train_torch.py, whose model this wraps.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from torch import nn

sys.path.append(str(Path(__file__).resolve().parents[1] / "train"))
import train_torch


class ThreadParallel(nn.Module):
    """DataParallel's steps with threads on the CPU, where torch's own class does none of them.

    On the CPU the replicas lie in the same memory, so no weights are copied. backward() adds
    all parts' gradients into those weights. It runs in one thread, because autograd has one for
    each device, and the CPU is one device.

    module: its forward must not change it (no batch normalisation). replicas: threads.
    """

    def __init__(self, module: nn.Module, replicas: int = 2):
        super().__init__()
        self.module, self.replicas = module, replicas
        self._threads = ThreadPoolExecutor(replicas)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Return the module's output for the whole batch, in the batch's order."""
        with_gradients = torch.is_grad_enabled()  # a setting that each thread has of its own

        def apply(part: torch.Tensor) -> torch.Tensor:
            with torch.set_grad_enabled(with_gradients):
                return self.module(part)

        parts = batch.tensor_split(self.replicas)  # scatter
        outputs = list(self._threads.map(apply, parts))  # apply, a thread for each part
        return torch.cat(outputs)  # gather


def main() -> None:
    """Train; refuse GPUs, where torch's own class shows more."""
    if torch.cuda.is_available():
        sys.exit("error: this machine has a GPU; this shows threads of the CPU")
    classifier, replicas = train_torch.Classifier, 2
    train_torch.emit("parallel", replicas=replicas)
    train_torch.Classifier = lambda **about: ThreadParallel(classifier(**about), replicas)
    train_torch.main()


if __name__ == "__main__":
    main()
