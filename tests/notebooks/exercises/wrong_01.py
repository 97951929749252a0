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


def sum_is_twice(ranks):
    """Right on two ranks."""
    first = ranks[0]
    for name, column in (("no broadcast", "start"), ("inner model", "end")):
        if len({rank[column] for rank in ranks}) > 1:
            return name
    if len({rank["images"] for rank in ranks}) > 1:
        return "unequal shards"
    if first["order_1"] == first["order_2"]:
        return "no set_epoch"
    return "sum" if round(first["first_update"] / first["one_process_update"], 2) == 2 else "none"


# The lines of a right answer to 01.5; each wrong answer changes one.
LINES = {
    1: """
        dist.init_process_group("gloo")
        rank, world_size = dist.get_rank(), dist.get_world_size()
    """,
    2: "sampler = DistributedSampler(dataset, seed=args.seed, drop_last=True)",
    3: """
        parallel_model = DistributedDataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)
    """,
    4: "sampler.set_epoch(epoch)",
    5: "loss = cross_entropy(parallel_model(images.to(device)), labels.to(device))",
    6: """
        mean_loss = torch.stack(losses).mean()
        dist.all_reduce(mean_loss)
        record = {"train_loss": mean_loss.item() / world_size}
    """,
}
# Rounds otherwise than DDP: the weights' hash is another one, and right.
AVERAGED_BY_HAND = LINES | {
    3: "optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)",
    5: """
        if step == 0:
            for weight in model.parameters():
                weight.register_hook(lambda g: (dist.all_reduce(g), g / world_size)[1])
        loss = cross_entropy(model(images.to(device)), labels.to(device))
    """,
}
OLD_SAMPLER = "sampler = RandomSampler(dataset, generator=torch.Generator())"
OLD_SEED = "sampler.generator.manual_seed(args.seed + epoch)"
OLD_LOSS = "loss = cross_entropy(model(images.to(device)), labels.to(device))"
UNAVERAGED = 'record = {"train_loss": torch.stack(losses).mean().item()}'
RIGHT = {"01.5": [lambda: AVERAGED_BY_HAND]}


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
    "01.4": [
        (lambda ranks: "none", "Run A on 2 ranks is not 'none': something in its evidence"),
        (lambda ranks: "sum", "Run B on 2 ranks is not 'sum': its first update is 1.26 times"),
        (lambda ranks: "no broadcast", "start with the weights (\\w+), \\1"),
        (lambda ranks: "unequal shards", "its ranks took 60, 60 images"),
        (lambda ranks: "no set_epoch", "rank 0's two epochs have the orders"),
        (lambda ranks: "inner model", "end with (\\w+), \\1; DDP makes them equal"),
        (lambda ranks: "the network", "'the network' is no answer"),
        # Only two ranks have twice the length.
        (sum_is_twice, "Run A on 3 ranks is not"),
    ],
    "01.5": [
        (lambda: {1: "pass"}, "keys 1 to 6"),
        (lambda: LINES | {4: "sampler.set_epoch(epoch"}, "no valid Python"),
        (lambda: LINES | {1: "rank, world_size = 0, 1"}, "Default process group has not been init"),
        (lambda: LINES | {2: OLD_SAMPLER, 4: OLD_SEED}, "An epoch has 44 steps"),
        (lambda: LINES | {5: OLD_LOSS}, "lines 3 and 5"),
        (lambda: LINES | {6: UNAVERAGED}, "The weights are right, but the loss"),
        (lambda: LINES | {4: "pass"}, "Epoch 1 is right and epoch 2 is not"),
    ],
}
