"""Part 1: all-reduce over send and receive."""

import math

import pytest
import torch
import torch.distributed as dist

from harness.checks import check, expect
from harness.ranks import run

REFUSED = "Part 1 is made of dist.send, recv, isend and irecv only."


def numbers(rank: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Whole numbers, others on each rank. float32 can hold the sums; no float those of int64."""
    generator = torch.Generator().manual_seed(1000 * rank + math.prod(shape))
    factor = 1 if dtype.is_floating_point else 2**50 + 1
    return factor * torch.randint(-999, 1000, shape, generator=generator).to(dtype)


def reduce(wire, shapes, dtype, op):
    import adapters

    rank, world_size = dist.get_rank(), dist.get_world_size()
    for shape in shapes:
        tensors = [numbers(r, shape, dtype) for r in range(world_size)]
        tensor, total = tensors[rank].clone(), sum(tensors)
        memory = tensor.detach()  # stays what it is if the tensor is given other memory
        wire.calls.clear()
        try:
            adapters.all_reduce(tensor, op)
        except Exception as error:
            error.add_note(f"(The tensor is {dtype}, of shape {shape}.)")
            raise
        memory = memory.clone()
        tensor.zero_()  # the caller may: what is still to be sent from it arrives as 0
        expected = total if op == "sum" else total / world_size
        mistakes = {
            "This is the sum: divide by the number of ranks.": total,
            "This is the mean: don't divide.": total / world_size,
            "This is divided twice.": total / world_size**2,
            "This is rounded: a float of fewer bits cannot hold it.": expected.float(),
        }
        some = total
        for k in range(1, world_size):  # neighbours in a ring
            for first in range(world_size):
                sum_of_k = sum((tensors * 2)[first : first + k])
                some = torch.where(memory == sum_of_k, sum_of_k, some)
            ranks = "one rank's" if k == 1 else f"{k} ranks'"
            mistakes[f"These are sums of {ranks} numbers at most, not of {world_size}."] = some
        if torch.equal(memory, tensors[rank]):
            hint = (
                "This is this rank's own: nothing was added, an unfinished chunk was passed on, "
                "or the result is not in tensor's memory (`tensor.data = x`)."
            )
            mistakes = {hint: tensors[rank]}
        check(memory, expected, f"the {dtype} {op} of shape {shape}", mistakes)
        wire.check_all_left(tensor)


def reduce_fractions(wire, length):
    """The bytes of the sum of fractions, whose last bits depend on the order of the additions."""
    import adapters

    tensor = torch.rand(length)
    adapters.all_reduce(tensor, "sum")
    return tensor.numpy().tobytes()


def count_sent(wire, length):
    reduce(wire, [(length,)], torch.float32, "sum")
    return wire.sent()


def check_bytes(world_size: int, length: int) -> None:
    limit = 2 * (world_size - 1) * math.ceil(length / world_size) * 4
    for rank, sent in enumerate(run(world_size, count_sent, length, refused=REFUSED)):
        expect(
            sent <= limit,
            f"{world_size} ranks, rank {rank} sent {sent:,.0f} bytes to all-reduce "
            f"{4 * length:,}. 2 (n - 1) / n of the vector is enough: {limit:,}, padding "
            "included. Send each number only where it is needed.",
        )


@pytest.mark.points(5)
def test_sum_on_2_4_and_8_ranks(draw):
    for world_size in (2, 4, 8):
        length = world_size * draw.randint(3, 200)
        run(world_size, reduce, [(length,)], torch.float32, "sum", refused=REFUSED)


@pytest.mark.points(5)
def test_sum_on_any_number_of_ranks(draw):
    for world_size in (3, draw.choice([5, 7])):
        length = world_size * draw.randint(3, 200)
        run(world_size, reduce, [(length,)] * 3, torch.float32, "sum", refused=REFUSED)


@pytest.mark.points(3)
def test_mean(draw):
    world_size = draw.choice([3, 4, 5])
    shapes = [(world_size * draw.randint(2, 50),)]
    slow_rank = {"delay": lambda call: 0.0 if dist.get_rank() else 0.05}  # did it wait?
    run(world_size, reduce, shapes, torch.float64, "mean", refused=REFUSED, **slow_rank)


@pytest.mark.points(4)
def test_sizes_that_do_not_divide_shapes_and_types(draw):
    """A vector shorter than the ranks are many, an empty one, a matrix; and equal last bits."""
    world_size = draw.choice([4, 5, 6])
    lengths = [1, world_size - 1, world_size + 1, draw.choice([101, 211, 307]), 0]
    shapes = [(length,) for length in lengths] + [(3, draw.choice([5, 7]), 2)]
    for dtype in (torch.float32, torch.int64):
        run(world_size, reduce, shapes, dtype, "sum", refused=REFUSED)
    results = run(world_size, reduce_fractions, draw.randint(90, 110), refused=REFUSED)
    for rank, result in enumerate(results):
        expect(
            result == results[0],
            f"ranks 0 and {rank} end with sums that differ in the last bits: add each "
            "number up on one rank, and send the result.",
        )


@pytest.mark.points(4)
def test_bytes_on_4_or_8_ranks(draw):
    check_bytes(draw.choice([4, 8]), 8 * draw.randint(300, 600))


@pytest.mark.points(4)
def test_bytes_on_any_number_of_ranks(draw):
    check_bytes(draw.choice([3, 5, 6, 7]), draw.randint(2000, 5000))
