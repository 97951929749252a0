"""DDP: gradients are averaged in flat buckets, which travel while backward goes on."""

import torch
import torch.distributed as dist
from torch import nn


class Bucket:
    """Parameters whose gradients travel together. The last number counts samples."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.parameters = parameters
        self.values = torch.empty(sum(p.numel() for p in parameters) + 1)
        self.work: dist.Work | None = None
        self.ready = 0

    def begin(self, samples: int) -> None:
        """Begin the sum over all ranks; a gradient that is missing here counts as 0."""
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        torch.cat([g.flatten() for g in gradients] + [torch.ones(1)], out=self.values)
        self.values *= samples
        self.work = dist.all_reduce(self.values, async_op=True)

    def finish(self) -> None:
        """Wait for the sum, and copy the mean back."""
        self.work.wait()
        self.work, self.ready = None, 0
        *gradients, samples = self.values.split([*(p.numel() for p in self.parameters), 1])
        for parameter, total in zip(self.parameters, gradients, strict=True):
            parameter.grad = (total / samples).view_as(parameter)


class DDP(nn.Module):
    def __init__(self, module: nn.Module, bucket_bytes: int) -> None:
        super().__init__()
        self.module, self.samples = module, 0
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.detach(), 0)
        groups: list[list[nn.Parameter]] = [[]]
        for parameter in reversed([p for p in module.parameters() if p.requires_grad]):
            if groups[-1] and sum(p.nbytes for p in [*groups[-1], parameter]) > bucket_bytes:
                groups.append([])
            groups[-1].append(parameter)
        self.buckets = [Bucket(group) for group in groups]
        for bucket in self.buckets:
            for parameter in bucket.parameters:
                parameter.register_post_accumulate_grad_hook(self._hook(bucket))

    def forward(self, *inputs, **named):
        return self.module(*inputs, **named)

    def _hook(self, bucket: Bucket):
        def note(_: nn.Parameter) -> None:
            bucket.ready += 1
            self._begin_complete_ones()

        return note

    def _begin_complete_ones(self) -> None:
        """In the same order on every rank: a bucket waits for those before it."""
        for bucket in self.buckets:
            if bucket.work:
                continue
            if bucket.ready < len(bucket.parameters):
                return
            bucket.begin(self.samples)

    def finish(self) -> None:
        """Also send the buckets whose parameters had no gradient; then wait for all."""
        for bucket in self.buckets:
            if not bucket.work:
                bucket.begin(self.samples)
        for bucket in self.buckets:
            bucket.finish()
