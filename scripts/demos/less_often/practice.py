"""Run a learner's way to send less on this rank, and what it has to be compared with."""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel


def call_accumulate(accumulate: Callable, parts: int) -> dict:
    """Call accumulate(parallel, optimizer, batches) once, with `parts` batches on each rank.

    Returns: weights, a list. sends: how often DDP averaged. updates: steps of the optimizer.
    expected: the weights from one large batch; expected_of_the_sum: from the sum of the means.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)  # the same model and data on every rank
    inputs, model = torch.randn(8 * parts * world_size, 4), nn.Linear(4, 1)
    targets = inputs.sum(1, keepdim=True)
    gradients = torch.autograd.grad(mse_loss(model(inputs), targets), list(model.parameters()))
    first = torch.cat([weight.detach().flatten() for weight in model.parameters()])
    gradient = torch.cat([part.flatten() for part in gradients])
    parallel, optimizer = DistributedDataParallel(model), torch.optim.SGD(model.parameters(), 0.1)
    sends, updates = [], []

    def counted(state, bucket):
        sends.append(bucket.index())
        return allreduce_hook(state, bucket)

    parallel.register_comm_hook(None, counted)
    optimizer.register_step_post_hook(lambda *_: updates.append(1))
    shares = (part[rank::world_size].chunk(parts) for part in (inputs, targets))
    accumulate(parallel, optimizer, list(zip(*shares, strict=True)))
    weights = torch.cat([weight.detach().flatten() for weight in model.parameters()])
    return {
        "weights": weights.tolist(),
        "sends": len(sends),
        "updates": len(updates),
        "expected": (first - 0.1 * gradient).tolist(),
        "expected_of_the_sum": (first - 0.1 * parts * gradient).tolist(),
    }
