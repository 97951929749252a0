"""ZeRO-1: each rank updates its part of the weights, and holds the optimizer's state of that part.

    optimizer = Zero1(model, lambda part: torch.optim.AdamW([part], lr=1e-3))
    loss.backward()
    optimizer.step()

It takes DDP's place: the gradients are averaged here. An all-reduce is a reduce-scatter and an
all-gather (lesson 02); ZeRO-1 updates between the two, so in a ring it sends as many bytes as DDP.
Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models,
https://arxiv.org/abs/1910.02054.
"""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn


class Zero1:
    """An optimizer whose state is divided among the ranks.

    Args:
        model: the same weights on every rank.
        make: from this rank's part of the weights, one flat parameter, to its optimizer.
    """

    def __init__(self, model: nn.Module, make: Callable[[nn.Parameter], torch.optim.Optimizer]):
        rank, self.world_size = dist.get_rank(), dist.get_world_size()
        parameters = list(model.parameters())
        length = -(-sum(p.numel() for p in parameters) // self.world_size)  # of a part, rounded up
        self.weights = torch.zeros(self.world_size * length)
        self.all_gradients = torch.zeros(self.world_size * length)
        start = 0
        for parameter in parameters:  # each becomes a view of the two flat tensors
            end = start + parameter.numel()
            self.weights[start:end] = parameter.detach().flatten()
            parameter.data = self.weights[start:end].view_as(parameter)
            parameter.grad = self.all_gradients[start:end].view_as(parameter)
            start = end
        self.part = nn.Parameter(self.weights[rank * length : (rank + 1) * length])
        self.gradient_of_part = self.part.grad = torch.zeros(length)
        self.optimizer = make(self.part)

    def step(self) -> None:
        """Average the gradients, update this rank's part, and give it to all ranks."""
        dist.reduce_scatter_tensor(self.gradient_of_part, self.all_gradients)
        self.gradient_of_part /= self.world_size
        self.optimizer.step()
        dist.all_gather_into_tensor(self.weights, self.part.detach().clone())

    def zero_grad(self) -> None:
        """Begin a new sum of gradients, in the same memory."""
        self.all_gradients.zero_()
