"""Part 3: an optimizer whose state is divided among the ranks (ZeRO-1)."""

import gc

import numpy as np
import pytest
import torch
import torch.distributed as dist

from harness.checks import check, expect
from harness.models import batch, layers, loss, perceptron, sizes
from harness.ranks import run

OPTIMIZERS = [
    (torch.optim.Adam, {"lr": 0.05}),
    (torch.optim.AdamW, {"lr": 0.02, "weight_decay": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
]
torch.optim.SGD([torch.zeros(1)])  # its first optimizer imports for seconds: not on each rank


def step(model, optimizer, number):
    """A step with the same gradients on every rank."""
    optimizer.zero_grad()
    loss(model, batch(0, number, 4)).backward()
    optimizer.step()


def train(wire, widths, optimizer_class, options, factor=1.0, frozen=0):
    """Compare all weights after each step with those of an optimizer that is not divided.

    factor: of the learning rate, after each step. frozen: so many parameters, the first ones.
    Returns (bytes sent in the last step, bytes of the weights that were trained).
    """
    import adapters

    model, *others = (perceptron(widths) for _ in range(3))
    for each in (model, *others):
        for parameter in [*each.parameters()][:frozen]:
            parameter.requires_grad_(False)
    optimizer = adapters.get_sharded_optimizer([*model.parameters()], optimizer_class, **options)
    whole, old_rate = (optimizer_class(each.parameters(), **options) for each in others)
    for number in range(4):
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        wire.calls.clear()
        for each, its in zip((model, *others), (optimizer, whole, old_rate), strict=True):
            step(each, its, number)
        for name, expected in others[0].named_parameters():
            at = f"{optimizer_class.__name__}, after step {number}: {name}"
            mistakes = {
                "It is as before the step: the rank that updates this part did not, or did not "
                "send it to all.": before[name],
                "It is a step with the old lr.": others[1].get_parameter(name),
            }
            if not expected.requires_grad:
                mistakes = {"It is frozen: leave it as it is.": model.get_parameter(name)}
            check(model.get_parameter(name), expected.detach(), at, mistakes)
        for group in (*optimizer.param_groups, *whole.param_groups):
            group["lr"] *= factor
        optimizer.zero_grad()
        for name, parameter in model.named_parameters():
            assert parameter.grad is None or not parameter.grad.any(), (
                f"{name}.grad is neither None nor 0 after zero_grad(): clear the gradients of all "
                "params, not only of this rank's part."
            )
    return wire.sent(), sum(p.nbytes for p in model.parameters() if p.requires_grad)


def train_divided(world_size, *arguments):
    results = run(world_size, train, *arguments)
    expect_divided([sent for sent, _ in results], results[0][1])


def expect_divided(sent, weights):
    """Expect that each weight was sent to the ranks that did not update it. sent: by rank."""
    needed = (len(sent) - 1) * weights
    expect(
        sum(sent) >= 0.99 * needed,
        f"{len(sent)} ranks sent {sum(sent):,.0f} bytes together in a step. If each weight is "
        f"updated on one rank and sent to the others, they send {needed:,}. Does each rank update "
        "all weights itself? Divide them.",
    )


def held_bytes(model) -> int:
    """The bytes of all tensors and NumPy arrays here, less the model's and its gradients."""
    gc.collect()
    objects = gc.get_objects()
    tensors = [item for item in objects if issubclass(type(item), torch.Tensor)]
    tensors += [tensor.grad for tensor in tensors if tensor.is_leaf and tensor.grad is not None]
    objects = gc.get_referents(*objects)  # arrays are not in the list itself
    objects += gc.get_referents(*(item for item in objects if type(item) in (dict, tuple)))
    arrays = [a if a.base is None else a.base for a in objects if type(a) is np.ndarray]
    memory = {a.ctypes.data: a.nbytes for a in arrays if type(a) is np.ndarray}
    storages = [tensor.untyped_storage() for tensor in tensors]
    memory |= {storage.data_ptr(): storage.nbytes() for storage in storages}
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return sum(memory.values()) - sum(t.nbytes for t in (*model.parameters(), *gradients))


def measure(wire, widths, optimizer_class, options):
    """(bytes that the optimizer holds between steps, bytes sent in a step)."""
    import adapters

    model = perceptron(widths)
    loss(model, batch(0, 0, 4)).backward()
    before = held_bytes(model)
    optimizer = adapters.get_sharded_optimizer([*model.parameters()], optimizer_class, **options)
    for number in range(2):
        wire.calls.clear()
        step(model, optimizer, number)
    sent = wire.sent()
    with_gradients = look(model)
    optimizer.zero_grad()
    return max(with_gradients, look(model)) - before, sent


def look(model) -> int:
    """What is held; gloo's threads let go of a tensor late, some with their next task."""
    looks = []
    for _ in range(4):
        dist.barrier()
        looks.append(held_bytes(model))
    return min(looks)


@pytest.mark.points(5)
def test_the_weights_of_an_optimizer_that_is_not_divided(draw):
    for optimizer_class, options in OPTIMIZERS:
        train_divided(draw.choice([2, 3, 4]), layers(draw, 4), optimizer_class, options)


@pytest.mark.points(3)
def test_more_ranks_than_parameters(draw):
    train_divided(draw.choice([5, 6]), layers(draw, 2), torch.optim.Adam, {"lr": 0.05})


@pytest.mark.points(2)
def test_a_learning_rate_that_changes(draw):
    train_divided(2, layers(draw, 3), *draw.choice(OPTIMIZERS), 0.5)


@pytest.mark.points(1)
def test_a_frozen_parameter(draw):
    train_divided(2, layers(draw, 3), *OPTIMIZERS[1], 1.0, draw.choice([1, 2]))


@pytest.mark.points(5)
def test_bytes_held(draw, record_property):
    """Adam's state is twice the weights. A copy of this rank's part of the weights is allowed."""
    widths, world_size = [6, *[draw.randint(30, 50)] * 12, 3], draw.choice([4, 5])
    weights, largest = sizes(widths)
    limit = 3 * (weights / world_size + largest)
    results = run(world_size, measure, widths, *OPTIMIZERS[0])
    expect_divided([sent for _, sent in results], weights)
    held_by_rank = ", ".join(f"{n_bytes:,}" for n_bytes, _ in results)
    figure = round(max(results)[0] / weights / 2, 4)
    record_property("leaderboard: bytes held / bytes of Adam's state", figure)
    for rank, (n_bytes, _) in enumerate(results):
        expect(
            n_bytes <= limit,
            f"{world_size} ranks, rank {rank} holds {n_bytes:,} bytes more than weights and "
            f"gradients; Adam's whole state is {2 * weights:,}, and {limit:,.0f} were allowed. "
            f"Held by rank: {held_by_rank}. Keep state, and copies of weights, of this rank's part "
            "only, and no view of a gradient after zero_grad(). If this rank's part is larger than "
            "1/n of the weights, divide by size.",
        )


@pytest.mark.points(4)
def test_bytes_of_a_step(draw):
    widths, world_size = [6, *[draw.randint(20, 30)] * 40, 3], draw.choice([4, 5])
    weights, largest = sizes(widths)
    limit = (world_size - 1) / world_size * (weights + world_size * largest) + 1000
    by_rank = [sent for _, sent in run(world_size, measure, widths, *OPTIMIZERS[2])]
    expect_divided(by_rank, weights)
    for rank, sent in enumerate(by_rank):
        expect(
            sent <= limit,
            f"{world_size} ranks, rank {rank} sent {sent:,.0f} bytes in a step. The weights "
            f"are {weights:,} bytes; each rank sends its part, to {world_size - 1} ranks: "
            f"{limit:,.0f} were allowed.",
        )
