"""Part 3: an optimizer whose state is divided among the ranks (ZeRO-1)."""

import gc

import pytest
import torch
import torch.distributed as dist

from checks import check
from models import batch, layers, loss, perceptron
from ranks import run

OPTIMIZERS = [
    (torch.optim.Adam, {"lr": 0.05}),
    (torch.optim.AdamW, {"lr": 0.02, "weight_decay": 0.1}),
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
]
SAMPLES = 4
torch.optim.SGD([torch.zeros(1)])  # its first optimizer imports for seconds: not on each rank


def make_optimizer(model, optimizer_class, options):
    import adapters

    return adapters.get_sharded_optimizer(list(model.parameters()), optimizer_class, **options)


def step(model, optimizer, number):
    """A step with the same gradients on every rank."""
    optimizer.zero_grad()
    loss(model, batch(0, number, SAMPLES)).backward()
    optimizer.step()


def train(wire, widths, optimizer_class, options, factor=1.0):
    """Compare all weights after each step with those of an optimizer that is not divided.

    factor: of the learning rate, after each step.
    """
    model, alone = perceptron(widths), perceptron(widths)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = make_optimizer(model, optimizer_class, options)
    whole = optimizer_class(alone.parameters(), **options)
    for number in range(4):
        step(model, optimizer, number)
        step(alone, whole, number)
        for name, expected in alone.named_parameters():
            at = f"{optimizer_class.__name__}, after step {number}: {name}"
            mistakes = {"It was never updated: send each part to all ranks.": before[name]}
            check(model.get_parameter(name), expected.detach(), at, mistakes)
        for group in (*optimizer.param_groups, *whole.param_groups):
            group["lr"] *= factor


def live_bytes() -> int:
    """The bytes of all tensors of this process; memory that several share counts once."""
    gc.collect()
    tensors = [item for item in gc.get_objects() if issubclass(type(item), torch.Tensor)]
    tensors += [tensor.grad for tensor in tensors if tensor.is_leaf and tensor.grad is not None]
    storages = [tensor.untyped_storage() for tensor in tensors]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())


def measure(wire, widths, optimizer_class, options):
    """(bytes that the optimizer holds between steps, bytes sent in a step)."""
    model = perceptron(widths)
    loss(model, batch(0, 0, SAMPLES)).backward()
    before = live_bytes()
    optimizer = make_optimizer(model, optimizer_class, options)
    for number in range(2):
        wire.calls.clear()
        step(model, optimizer, number)
    sent, looks = wire.sent(), []
    for _ in range(4):  # gloo's threads let go of a tensor late, some with their next task
        dist.barrier()
        looks.append(live_bytes())
    return min(looks) - before, sent


def sizes(widths: list[int]) -> tuple[int, int]:
    """(bytes of the weights, of the largest parameter)."""
    all_bytes = [parameter.nbytes for parameter in perceptron(widths).parameters()]
    return sum(all_bytes), max(all_bytes)


@pytest.mark.points(6)
def test_the_weights_of_an_optimizer_that_is_not_divided(draw):
    for optimizer_class, options in OPTIMIZERS:
        run(draw.choice([2, 3, 4]), train, layers(draw, 4), optimizer_class, options)


@pytest.mark.points(3)
def test_more_ranks_than_parameters(draw):
    run(draw.choice([5, 6]), train, layers(draw, 2), torch.optim.Adam, {"lr": 0.05})


@pytest.mark.points(2)
def test_a_learning_rate_that_changes(draw):
    run(2, train, layers(draw, 3), *draw.choice(OPTIMIZERS), 0.5)


@pytest.mark.points(5)
def test_bytes_held(draw, record_property):
    """Adam's state is twice the weights. A copy of this rank's part of the weights is allowed."""
    widths, world_size = [6, *[draw.randint(30, 50)] * 12, 3], draw.choice([4, 5])
    weights, largest = sizes(widths)
    limit = 3 * (weights / world_size + largest)
    results = run(world_size, measure, widths, *OPTIMIZERS[0])
    most = max(held_bytes for held_bytes, _ in results)
    record_property("leaderboard: bytes held / bytes of Adam's state", round(most / weights / 2, 4))
    for rank, (held_bytes, _) in enumerate(results):
        if held_bytes > limit:
            pytest.fail(
                f"{world_size} ranks, rank {rank} holds {held_bytes:,} bytes more than weights and "
                f"gradients; Adam's whole state is {2 * weights:,}, and {limit:,.0f} were allowed. "
                "Keep state, and copies of weights, of this rank's part only.",
                pytrace=False,
            )


@pytest.mark.points(4)
def test_bytes_of_a_step(draw):
    widths, world_size = [6, *[draw.randint(20, 30)] * 12, 3], draw.choice([4, 5])
    weights, largest = sizes(widths)
    limit = (world_size - 1) / world_size * (weights + world_size * largest) + 1000
    for rank, (_, sent) in enumerate(run(world_size, measure, widths, *OPTIMIZERS[2])):
        if sent > limit:
            pytest.fail(
                f"{world_size} ranks, rank {rank} sent {sent:,.0f} bytes in a step. The weights "
                f"are {weights:,} bytes, and each rank sends its part of them: {limit:,.0f} were "
                "allowed.",
                pytrace=False,
            )
