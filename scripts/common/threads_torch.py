"""DataParallel's four steps on the CPU, where torch's own class does none of them."""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


class ThreadParallel(nn.Module):
    """A module that computes the parts of a batch in threads of this one process.

    torch.nn.DataParallel does this with GPUs: scatter the batch, replicate the weights to every
    GPU, apply each replica in a thread of its own, gather the outputs. On the CPU the replicas
    lie in the same memory, so nothing is copied: every thread uses the same weights.

    backward() then adds all parts' gradients into those weights. It runs in one thread, because
    autograd has a thread for each device, and the CPU is one device.

    module: its forward must not change it (no batch normalisation). replicas: threads.
    """

    def __init__(self, module: nn.Module, replicas: int):
        super().__init__()
        self.module, self.replicas = module, replicas
        self._threads = ThreadPoolExecutor(replicas)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Return the module's output for the whole batch, in the batch's order."""
        parts = batch.tensor_split(self.replicas)  # scatter
        with_gradients = torch.is_grad_enabled()  # a setting that each thread has of its own

        def apply(part: torch.Tensor) -> torch.Tensor:
            with torch.set_grad_enabled(with_gradients):
                return self.module(part)

        return torch.cat(list(self._threads.map(apply, parts)))  # apply, gather
