"""Ways to train in which ranks send less than DistributedDataParallel (DDP) does.

Each is a generator: a next() trains this rank on its next batch, and sends what the way sends then.
All ranks must call it alike.

    steps = METHODS["local SGD"](model, optimizer, batches)
    next(steps)

model: the same weights on every rank. batches: this rank's own, (x, y) as gpt.batch gives them.
every: batches from one message to the next.
"""

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.optim import Optimizer

from common import hooks_torch
from sharding.gpt import mean_loss

Batches = Iterable[tuple[torch.Tensor, torch.Tensor]]
Steps = Iterator[None]


def ddp(model: nn.Module, optimizer: Optimizer, batches: Batches, hook: str = "default") -> Steps:
    """Average the gradients in every step. hook: how they travel, see common/hooks_torch.py."""
    parallel = hooks_torch.parallel(model, bucket_megabytes=1000)  # one bucket
    hooks_torch.register(parallel, hook, powersgd_start=2)
    for x, y in batches:
        optimizer.zero_grad()
        mean_loss(parallel, x, y).backward()
        optimizer.step()
        yield


def accumulate(model: nn.Module, optimizer: Optimizer, batches: Batches, every: int) -> Steps:
    """Add up the gradients of several batches; average and update once."""
    parallel = hooks_torch.parallel(model, bucket_megabytes=1000)
    for number, (x, y) in enumerate(batches, 1):
        last = number % every == 0
        with nullcontext() if last else parallel.no_sync():
            (mean_loss(parallel, x, y) / every).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
        yield


def local_sgd(model: nn.Module, optimizer: Optimizer, batches: Batches, every: int) -> Steps:
    """Train alone; from time to time all ranks take the mean of their weights."""
    for number, (x, y) in enumerate(batches, 1):
        train_alone(model, optimizer, x, y)
        if number % every == 0:
            weights = parameters_to_vector(model.parameters()).detach()
            vector_to_parameters(average(weights), model.parameters())
        yield


def diloco(
    model: nn.Module, optimizer: Optimizer, batches: Batches, every: int, momentum: float = 0.9
) -> Steps:
    """Train alone; from time to time step with the mean of all displacements, as a gradient."""
    shared = parameters_to_vector(model.parameters()).detach()
    outer = torch.optim.SGD([shared], lr=0.7, momentum=momentum, nesterov=True)
    for number, (x, y) in enumerate(batches, 1):
        train_alone(model, optimizer, x, y)
        if number % every == 0:
            displacement = shared - parameters_to_vector(model.parameters()).detach()
            shared.grad = average(displacement)  # the pseudo-gradient
            outer.step()
            vector_to_parameters(shared.clone(), model.parameters())
        yield


def top_k(
    model: nn.Module, optimizer: Optimizer, batches: Batches, share: float, memory: bool = True
) -> Steps:
    """Send the gradient's largest numbers and their places; the rest waits for its turn."""
    left_out = torch.zeros(sum(weight.numel() for weight in model.parameters()))
    for x, y in batches:
        optimizer.zero_grad()
        mean_loss(model, x, y).backward()
        gradient = gradient_of(model) + left_out
        places = gradient.abs().topk(int(share * len(gradient))).indices
        if memory:
            left_out = gradient.index_fill(0, places, 0)
        values, places = gather(gradient[places]), gather(places.int())
        sums = torch.zeros_like(gradient).index_add(0, places, values)
        set_gradient(model, sums / dist.get_world_size())
        optimizer.step()
        yield


def alone(model: nn.Module, optimizer: Optimizer, batches: Batches) -> Steps:
    """Never send anything: each rank trains a model of its own."""
    for x, y in batches:
        train_alone(model, optimizer, x, y)
        yield


METHODS = {
    "DDP": partial(ddp),
    "fp16": partial(ddp, hook="fp16"),
    "PowerSGD": partial(ddp, hook="powersgd"),
    "top-k": partial(top_k, share=0.01),
    "top-k without memory": partial(top_k, share=0.01, memory=False),
    "accumulation": partial(accumulate, every=4),
    "local SGD": partial(local_sgd, every=16),
    "local SGD 64": partial(local_sgd, every=64),
    "DiLoCo": partial(diloco, every=16),
    "DiLoCo 0.5": partial(diloco, every=16, momentum=0.5),
    "alone": partial(alone),
}


def train_alone(model: nn.Module, optimizer: Optimizer, x: torch.Tensor, y: torch.Tensor) -> None:
    """Take a step with this rank's own gradient."""
    optimizer.zero_grad()
    mean_loss(model, x, y).backward()
    optimizer.step()


def average(vector: torch.Tensor) -> torch.Tensor:
    """Return the mean of all ranks' vectors, in the place of this rank's."""
    dist.all_reduce(vector)
    return vector.div_(dist.get_world_size())


def gather(vector: torch.Tensor) -> torch.Tensor:
    """Return all ranks' vectors, one behind the other. They must be equally long."""
    vectors = [torch.empty_like(vector) for _ in range(dist.get_world_size())]
    dist.all_gather(vectors, vector)
    return torch.cat(vectors)


def gradient_of(model: nn.Module) -> torch.Tensor:
    """Return all gradients as one vector."""
    return parameters_to_vector(weight.grad for weight in model.parameters())  # type: ignore[misc]


def set_gradient(model: nn.Module, vector: torch.Tensor) -> None:
    """Give each weight its part of a vector as its gradient."""
    weights = list(model.parameters())
    parts = vector.split([weight.numel() for weight in weights])
    for weight, part in zip(weights, parts, strict=True):
        weight.grad = part.view_as(weight)
