"""ZeRO-1: each rank updates an equal part of the weights, end to end, and shares it."""

import torch
import torch.distributed as dist
from torch import nn


class ShardedOptimizer:
    def __init__(self, params: list[nn.Parameter], optimizer_class, **options) -> None:
        self.params, self.rank = [p for p in params if p.requires_grad], dist.get_rank()
        self.length = -(-sum(p.numel() for p in self.params) // dist.get_world_size())
        self.part = nn.Parameter(self._own_part([p.detach() for p in self.params]))
        self.optimizer = optimizer_class([self.part], **options)
        self.param_groups = self.optimizer.param_groups

    def _own_part(self, tensors: list[torch.Tensor]) -> torch.Tensor:
        """This rank's part of the tensors, laid end to end, without laying all of them."""
        part, start = torch.zeros(self.length), -self.rank * self.length
        for tensor in tensors:
            low, high = max(start, 0), min(start + tensor.numel(), self.length)
            if low < high:
                part[low:high] = tensor.flatten()[low - start : high - start]
            start += tensor.numel()
        return part

    def zero_grad(self) -> None:
        for parameter in self.params:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        self.part.grad = self._own_part([p.grad for p in self.params])
        self.optimizer.step()
        self.part.grad = None
        weights = torch.empty(self.length * dist.get_world_size())
        dist.all_gather_into_tensor(weights, self.part.detach())
        sizes = [p.numel() for p in self.params]
        for parameter, values in zip(self.params, weights[: sum(sizes)].split(sizes), strict=True):
            parameter.copy_(values.view_as(parameter))
