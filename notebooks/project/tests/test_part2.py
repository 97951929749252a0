"""Part 2: DDP with flat buckets that travel while backward goes on."""

import time

import pytest
import torch
import torch.distributed as dist
from torch import nn

from harness.checks import check, expect
from harness.models import FEATURES, Branches, Tied, batch, layers, loss, perceptron, sizes
from harness.ranks import run

LEARNING_RATE = 0.1
SLOW = 0.15  # seconds that a message or a collective takes on a slow link
WHOLE = 2**30  # bytes of a bucket that takes every gradient


def gradients(model, rank, step, samples):
    """This rank's alone, by name; 0 where the loss does not need the parameter."""
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    found_gradients = torch.autograd.grad(
        loss(model, batch(rank, step, samples)), list(trained.values()), allow_unused=True
    )
    pairs = zip(trained.items(), found_gradients, strict=True)
    return {name: torch.zeros_like(p) if g is None else g for (name, p), g in pairs}


def train(wire, make, bucket_bytes, first_samples, steps=3, growth=0):
    """Compare every gradient of every step with that of one process on all samples.

    make: from a seed to the model. first_samples: of each rank in the first step, and in each
    later one `growth` more.
    """
    import adapters

    rank = dist.get_rank()
    module, alone = make(seed=1 + rank), make(seed=1)
    ddp = adapters.get_ddp(module, bucket_bytes)
    module.load_state_dict(alone.state_dict())  # a missing broadcast fails in `start`
    for step in range(steps):
        samples = [count + step * growth for count in first_samples]
        value = loss(ddp, batch(rank, step, samples[rank]))
        adapters.ddp_before_backward(ddp, samples[rank])
        value.backward()
        adapters.ddp_after_backward(ddp)
        by_rank = [gradients(alone, r, step, count) for r, count in enumerate(samples)]
        parameters = dict(alone.named_parameters())
        names = [name for name, _ in module.named_parameters()]
        assert names == list(parameters), (
            f"the module's parameters are now {names}, and were {list(parameters)}: what was one "
            "parameter, under two names, must stay one."
        )
        for name, parameter in module.named_parameters():
            at = f"step {step}: {name}.grad"
            if not parameter.requires_grad:
                assert parameter.grad is None, f"{at} is not None, and the parameter is frozen."
                continue
            weighted = sum(g[name] * count for g, count in zip(by_rank, samples, strict=True))
            total = sum(g[name] for g in by_rank)
            expected = weighted / sum(samples)
            if parameter.grad is None and not expected.any():
                continue
            own_gradient = by_rank[rank][name]
            of_own = {
                "It is this rank's own: nothing was exchanged, not waited for, or not copied back "
                "into p.grad.": own_gradient,
                "It is 0: the bucket was filled before the gradient was there (register_hook is "
                "too early), or not copied back.": torch.zeros_like(own_gradient),
                "It is this rank's share alone: not waited for.": own_gradient
                * (samples[rank] / sum(samples)),
            }
            mistakes = {
                **(of_own if own_gradient.any() else {}),
                "It is the sum of all ranks': divide.": total,
                "It is the mean of the ranks' means: weigh each by its samples.": total
                / len(samples),
                "It is the sum over all samples: divide by their number.": weighted,
                "It is divided by the first step's samples.": weighted / sum(first_samples),
                "Multiply by this rank's samples before the sum.": total / sum(samples),
                "It counts twice.": 2 * expected,
                "No single mistake explains it. Does each part of the bucket go back to its own "
                "parameter? Do all ranks send the same buckets in the same order?": parameter.grad,
            }
            check(parameter.grad, expected, at, mistakes)
            with torch.no_grad():
                parameters[name] -= LEARNING_RATE * expected
                parameter -= LEARNING_RATE * parameter.grad
        module.zero_grad()


def tensors(module) -> dict[str, torch.Tensor]:
    """Parameters and buffers; state_dict() leaves out those that are not persistent."""
    return dict(module.named_parameters()) | dict(module.named_buffers())


def start(wire, widths):
    import adapters

    module, first = (perceptron(widths, seed) for seed in (1 + dist.get_rank(), 1))
    for model in (module, first):
        model[0][0].requires_grad_(False)
    own_state = {name: tensor.clone() for name, tensor in tensors(module).items()}
    ddp = adapters.get_ddp(module, WHOLE)
    for name, tensor in tensors(module).items():
        mistakes = {"It is as this rank made it: send rank 0's to all.": own_state[name]}
        check(tensor, tensors(first)[name], name, mistakes)
    x = batch(0, 0, 4)
    mistakes = {"Call it as `module` may be called.": ddp(input=x)}
    check(ddp(input=x), module(input=x), "ddp(input=x)", mistakes)


def count_exchanges(wire, widths, bucket_bytes=WHOLE):
    """In the second step: (exchanges, bytes of the largest call, bytes sent)."""
    import adapters

    module = perceptron(widths)
    ddp = adapters.get_ddp(module, bucket_bytes)
    for step in range(2):
        wire.calls.clear()
        value = loss(ddp, batch(dist.get_rank(), step, 4))
        adapters.ddp_before_backward(ddp, 4)
        value.backward()
        adapters.ddp_after_backward(ddp)
        module.zero_grad()
    assert wire.calls, "Nothing was sent."
    messages = sum(call.name == "send" for call in wire.calls)
    exchanges = len(wire.calls) - messages + messages / (2 * (dist.get_world_size() - 1))
    return exchanges, max(call.nbytes for call in wire.calls), wire.sent()


def overlap(wire, width, depth, seconds):
    """The bytes of buckets that had arrived before the first layer's backward."""
    import adapters

    torch.manual_seed(0)
    layer_bytes = 4 * width * (width + 1)
    enough, sent, travelled, arrived = (depth - 2) * layer_bytes, 0.0, False, 0.0

    def look(*_) -> None:
        """Wait until enough bytes are being sent, 4 s at most; is a part on its way meanwhile?"""
        nonlocal sent, travelled, arrived
        arrived = wire.sent() - wire.travelling()
        deadline = time.monotonic() + 4
        while time.monotonic() < deadline and not (travelled and sent >= enough):
            travelled |= wire.travelling() > 0
            sent = wire.sent()
            time.sleep(0.01)

    first = nn.Linear(FEATURES, width)
    first.register_full_backward_pre_hook(look)
    module = nn.Sequential(first, *(nn.Linear(width, width) for _ in range(depth)))
    ddp = adapters.get_ddp(module, layer_bytes)
    wire.delay = lambda call: seconds  # the broadcast was fast
    value = ddp(batch(dist.get_rank(), 0, 4)).mean()
    adapters.ddp_before_backward(ddp, 4)
    wire.calls.clear()  # numbers of samples are no bucket
    value.backward()
    behind = f"backward had {depth} of {depth + 1} layers behind it, each as large as a bucket, and"
    assert sent >= enough, (
        f"{behind} {sent:,.0f} of their {depth * layer_bytes:,} bytes were being sent; "
        f"{enough:,} were expected. Begin to send a bucket in the hook of its last gradient, "
        "and fill buckets in the order in which hooks run, the last layer's first."
    )
    assert travelled, (
        f"{behind} no bucket was on its way any more. Don't wait for a bucket in its hook, but in "
        "ddp_after_backward."
    )
    adapters.ddp_after_backward(ddp)
    return arrived


@pytest.mark.points(3)
def test_all_ranks_start_from_rank_0(draw):
    run(draw.choice([2, 3, 4]), start, layers(draw, 3))


@pytest.mark.points(5)
def test_gradients_are_averaged(draw):
    widths, world_size = layers(draw, draw.choice([3, 4])), draw.choice([2, 3, 4])
    for bucket_bytes in (WHOLE, draw.choice([256, 1024])):
        samples = [draw.randint(2, 6)] * world_size
        run(world_size, train, lambda seed: perceptron(widths, seed), bucket_bytes, samples)


@pytest.mark.points(3)
def test_the_optimizer_does_not_overtake_a_slow_link(draw):
    widths, seconds = layers(draw, 2), [SLOW, 0.0]
    draw.shuffle(seconds)
    slow_rank = {"delay": lambda call: seconds[dist.get_rank()]}
    run(2, train, lambda seed: perceptron(widths, seed), 256, [3, 3], 2, **slow_rank)


@pytest.mark.points(4)
def test_uneven_shards(draw):
    widths, world_size = layers(draw, 3), draw.choice([2, 3])
    samples = [draw.randint(1, 3), *(draw.randint(4, 9) for _ in range(world_size - 1))]
    run(world_size, train, lambda seed: perceptron(widths, seed), 1024, samples, 3, 2)


@pytest.mark.points(3)
def test_tied_weights(draw):
    width, world_size = draw.randint(4, 12), draw.choice([2, 3])
    for bucket_bytes in (256, WHOLE):
        run(world_size, train, lambda seed: Tied(width, seed), bucket_bytes, [4] * world_size)


@pytest.mark.points(4)
def test_parameters_without_a_gradient(draw):
    """Of no rank, of some ranks, of others in the next step; and frozen ones."""
    width, world_size = draw.randint(4, 12), draw.choice([2, 3])
    for bucket_bytes in (64, WHOLE):
        run(world_size, train, lambda seed: Branches(width, seed), bucket_bytes, [4] * world_size)


@pytest.mark.points(2)
def test_buckets_are_flat_and_of_bucket_bytes(draw):
    widths, world_size = layers(draw, 8), draw.choice([2, 3])
    for rank, (exchanges, *_) in enumerate(run(world_size, count_exchanges, widths)):
        expect(
            exchanges <= 2,
            f"{world_size} ranks, rank {rank}: {len(widths) * 2 - 2} gradients that fit in one "
            f"bucket took {exchanges:g} exchanges; one of a flat bucket, and one of numbers of "
            "samples, were expected.",
        )
    widths = [6, *[draw.randint(15, 25)] * 20, 3]
    weights, largest = sizes(widths)
    bucket_bytes = draw.randint(4, 5) * largest
    fewest, most = weights / (bucket_bytes + largest), weights / (bucket_bytes - largest) + 2
    for exchanges, sent_at_once, _ in run(2, count_exchanges, widths, bucket_bytes):
        expect(
            fewest <= exchanges <= most and sent_at_once <= bucket_bytes + largest + 100,
            f"2 ranks: {weights:,} bytes of gradients, none larger than {largest:,}, in buckets of "
            f"{bucket_bytes:,}: {exchanges:g} exchanges, {sent_at_once:,.0f} bytes in the "
            f"largest call; {fewest:.1f} to {most:.1f} exchanges were expected, and no bucket "
            "larger by more than one parameter. bucket_bytes are bytes, not numbers.",
        )


@pytest.mark.points(2)
def test_bytes_of_a_step(draw):
    widths, world_size = layers(draw, 4), draw.choice([3, 4])
    n_bytes, _ = sizes(widths)
    for rank, (*_, sent) in enumerate(run(world_size, count_exchanges, widths)):
        limit = 1.05 * 2 * (world_size - 1) / world_size * n_bytes + 1000
        expect(
            sent <= limit,
            f"{world_size} ranks, rank {rank} sent {sent:,.0f} bytes in a step with "
            f"{n_bytes:,} of gradients. An all-reduce sends 2 (n - 1) / n of them; "
            f"{limit:,.0f} were allowed.",
        )


@pytest.mark.points(4)
def test_buckets_travel_while_backward_goes_on(draw):
    width, depth = draw.randint(20, 40), draw.randint(5, 7)
    limit = (depth - 2) / 2 * 4 * width * (width + 1)
    for seconds in (SLOW, 4 * SLOW):  # on a busy machine all may be slow, and some arrive
        arrived = max(run(2, overlap, width, depth, seconds))
        if arrived < limit:
            break
    expect(
        arrived < limit,
        f"2 ranks: {arrived:,.0f} bytes of buckets, of {limit:,.0f} at most, had arrived before "
        "the first layer's backward. A hook waited: wait in ddp_after_backward only.",
    )
