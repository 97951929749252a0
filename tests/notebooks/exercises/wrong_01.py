"""Plausible wrong answers to lesson 01's exercises, and what they must be told."""

import numpy as np


def padded(images, rank, world_size):
    """Fills up with images from the start, as DistributedSampler does by default."""
    each = -(-images // world_size)
    return [number % images for number in range(rank, each * world_size, world_size)]


def changes_its_input(gradient, own_images, all_images):
    gradient *= own_images / all_images
    return gradient


def trained(model, loss_of, images, labels, steps, **how):
    """The solution, with one thing wrong. how: what is not as it should be."""
    import torch
    import torch.distributed as dist

    rank, world_size = dist.get_rank(), dist.get_world_size()
    if how.get("broadcast", True):
        for weight in model.parameters():
            dist.broadcast(weight.data, src=how.get("root", 0))
    part = how.get("part", lambda images, rank, n: images[rank::n])
    images, labels = part(images, rank, world_size), part(labels, rank, world_size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(steps):
        optimizer.zero_grad()
        loss_of(model, images, labels).backward()
        for weight in model.parameters():
            if how.get("reduce", lambda rank, step: True)(rank, step):
                dist.all_reduce(weight.grad)
                weight.grad /= how.get("divisor", world_size)
        optimizer.step()


def unchanged(*given):
    """mpirun alone makes nothing parallel."""
    never = {"broadcast": False, "reduce": lambda rank, step: False}
    return trained(*given, part=lambda images, rank, n: images, **never)


def with_ddp_on_all_images(model, loss_of, images, labels, steps):
    import torch
    from torch.nn.parallel import DistributedDataParallel

    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model, images, labels).backward()
        optimizer.step()


WRONG = {
    "01.1": [
        (lambda n, r, w: list(range(r, n, w)), "shards have 360, 359, 359, 359 images"),
        (lambda n, r, w: np.array_split(np.arange(n), w)[r], "must be equal"),
        (padded, "image 0 is taken 2 times"),
        (lambda n, r, w: list(range(n)), "image 0 is taken 4 times"),
        (lambda n, r, w: [], "each rank gets 0; 2 would be possible"),
        (lambda n, r, w: range(r + 1, n // w * w + 1, w), "there is no image number 8"),
        (lambda n, r, w: n // w, "Return a list"),
    ],
    "01.2": [
        (lambda g, count, every: g, "only added"),
        (lambda g, count, every: g * count, "times too large: divide by all images"),
        (lambda g, count, every: g / count, "its share of all images"),
        (lambda g, count, every: float(g.mean()), r"returns the shape \(\)"),
        (changes_its_input, "changes the gradient that it gets"),
    ],
    "01.3": [
        (unchanged, "every rank took all 60 images"),
        (with_ddp_on_all_images, "every rank took all 60 images"),
        (
            lambda *given: trained(*given, part=lambda images, rank, n: images[: len(images) // n]),
            "30 images were taken by more than one rank",
        ),
        (
            lambda *given: trained(*given, part=lambda images, rank, n: images[rank :: n + 1]),
            "20 images were taken by no rank",
        ),
        (lambda *given: trained(*given, broadcast=False), "Broadcast rank 0's weights first"),
        (lambda *given: trained(*given, root=1), "doesn't begin with rank 0's weights"),
        (
            lambda *given: trained(*given, reduce=lambda rank, step: False),
            r"not averaged between backward\(\) and step",
        ),
        (lambda *given: trained(*given, divisor=1), "2 times too long: all_reduce adds"),
        (lambda *given: trained(*given, divisor=3), "one process gets others"),
        (lambda *given: None, "never called loss_of"),
        # The last: ranks that hang are ended.
        (
            lambda *given: trained(*given, reduce=lambda rank, step: rank == 0),
            "wait for each other forever",
        ),
    ],
}
