"""Trainings on real ranks with a mistake planted in each, and the evidence that they leave.

A run has a letter. Exercise 01.4 gives the evidence; the mistake is to be named from it.
"""

import hashlib

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import parameters_to_vector

IMAGES, PIXELS, GLOBAL_BATCH, EPOCHS, RATE = 120, 9, 24, 2, 0.5
MISTAKES = {
    "A": "sum",
    "B": "inner model",
    "C": "none",
    "D": "no set_epoch",
    "E": "unequal shards",
    "F": "no broadcast",
}


def mistakes() -> dict[str, str]:
    """Run -> its mistake."""
    return MISTAKES


def train(run: str) -> dict:
    """Train on all ranks with the mistake of a run; every rank must call it alike.

    Returns the evidence of this rank:
        images: how many it computed with in an epoch. steps: its updates of the weights.
        order_1, order_2: hashes of the images' numbers, in the order of epochs 1 and 2.
        start, end: hashes of its weights before the first step and after the last.
        loss: the mean over the last epoch, of its own images.
        first_update: length of the first change of its weights. one_process_update: the same of a
            process that takes rank 0's first weights and the whole batches.
    """
    mistake, rank = MISTAKES[run], dist.get_rank()
    images, labels, model = _data_and_model(rank)
    if mistake == "inner model":
        DistributedDataParallel(model)  # equal weights at the start, and nothing after that
    elif mistake != "no broadcast":
        for weight in model.parameters():
            dist.broadcast(weight.data, src=0)
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    weights = [parameters_to_vector(model.parameters()).detach()]
    orders: list[list[int]] = []
    for epoch in range(EPOCHS):
        batches = _shuffled_batches(0 if mistake == "no set_epoch" else epoch)
        parts = [_part(batch, mistake == "unequal shards") for batch in batches]
        losses = []
        for part in parts:
            loss = cross_entropy(model(images[part]), labels[part])
            optimizer.zero_grad()
            loss.backward()
            if mistake != "inner model":
                _all_reduce(model, 1 if mistake == "sum" else dist.get_world_size())
            optimizer.step()
            losses.append(loss.item())
            weights.append(parameters_to_vector(model.parameters()).detach())
        orders.append(torch.cat(parts).tolist())
    return {
        "images": len(orders[0]),
        "steps": len(weights) - 1,
        "order_1": _hash(orders[0]),
        "order_2": _hash(orders[1]),
        "start": _hash(weights[0].tolist()),
        "end": _hash(weights[-1].tolist()),
        "loss": round(sum(losses) / len(losses), 3),
        "first_update": round(float((weights[1] - weights[0]).norm()), 4),
        "one_process_update": round(_one_process_update(), 4),
    }


def _data_and_model(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.nn.Module]:
    """The same images and labels for every rank; a model whose weights the seed decides."""
    torch.manual_seed(100)
    images, labels = torch.randn(IMAGES, PIXELS), torch.randint(10, (IMAGES,))
    torch.manual_seed(seed)
    return images, labels, torch.nn.Linear(PIXELS, 10)


def _shuffled_batches(epoch: int) -> tuple[torch.Tensor, ...]:
    """The numbers of all images, shuffled alike on every rank, in global batches."""
    generator = torch.Generator().manual_seed(epoch)
    return torch.randperm(IMAGES, generator=generator).split(GLOBAL_BATCH)


def _part(batch: torch.Tensor, unequal: bool) -> torch.Tensor:
    """This rank's part of a global batch; unequal: rank 0 leaves four images to each other rank."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if not unequal:
        return batch[rank::world_size]
    first = len(batch) - 4 * (world_size - 1)
    return batch[:first] if rank == 0 else batch[first + 4 * (rank - 1) :][:4]


def _all_reduce(model: torch.nn.Module, divisor: int) -> None:
    for gradient in [weight.grad for weight in model.parameters() if weight.grad is not None]:
        dist.all_reduce(gradient)
        gradient /= divisor


def _one_process_update() -> float:
    """How far one process moves its weights in its first step, with the whole first batch."""
    images, labels, model = _data_and_model(0)
    batch = _shuffled_batches(0)[0]
    loss = cross_entropy(model(images[batch]), labels[batch])
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    return float(RATE * parameters_to_vector(gradients).norm())


def _hash(values: list) -> str:
    return hashlib.sha256(str(values).encode()).hexdigest()[:6]
