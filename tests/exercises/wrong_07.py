"""Plausible wrong answers to lesson 07's exercises, and what the check says of each."""

import numpy as np
import torch
import torch.distributed as dist


def scrambled(record):
    return np.frombuffer(record, np.uint8, offset=1).reshape(32, 32, 3)


def with_the_label(record):
    return np.frombuffer(record[:-1], np.uint8).reshape(3, 32, 32).transpose(1, 2, 0)


def on_its_side(record):
    return np.frombuffer(record, np.uint8, offset=1).reshape(3, 32, 32).transpose()


def colour_first(record):
    return np.frombuffer(record, np.uint8, offset=1).reshape(3, 32, 32)


def blue_first(record):
    return (
        np.frombuffer(record, np.uint8, offset=1).reshape(3, 32, 32).transpose(1, 2, 0)[..., ::-1]
    )


def ratio(instances, ranks_each):
    ranks = instances * ranks_each
    return ((ranks - 1) / ranks) / ((instances - 1) / instances)


def upside_down(instances, ranks_each):
    return 1 / ratio(instances, ranks_each) if instances > 1 else 1


def as_many_as_ranks(instances, ranks_each):
    return ranks_each


def one_instance_forgotten(instances, ranks_each):
    return ratio(instances, ranks_each)


def flat(tensor, inside, across):
    dist.all_reduce(tensor)
    return tensor


def all_of_it_across(tensor, inside, across):
    dist.all_reduce(tensor, group=inside)
    dist.all_reduce(tensor, group=across)
    return tensor


def inside_only(tensor, inside, across):
    dist.all_reduce(tensor, group=inside)
    return tensor


def not_gathered(tensor, inside, across):
    parts = list(tensor.chunk(dist.get_world_size(inside)))
    mine = torch.empty_like(parts[0])
    dist.reduce_scatter(mine, parts, group=inside)
    dist.all_reduce(mine, group=across)
    return mine


def nothing_returned(tensor, inside, across):
    dist.all_reduce(tensor, group=inside)


WRONG = {
    "07.1": [
        (scrambled, "pixels are scrambled"),
        (with_the_label, "the label"),
        (on_its_side, "exchanged"),
        (colour_first, "The shape is"),
        (blue_first, "Red and blue"),
    ],
    "07.2": [
        (upside_down, "upside down"),
        (as_many_as_ranks, "only its ends do"),
        (one_instance_forgotten, "divides by zero"),
    ],
    "07.3": [
        (flat, "without a group"),
        (all_of_it_across, "are enough"),
        (inside_only, "nothing went across"),
        (not_gathered, "join them"),
        (nothing_returned, "Return a tensor"),
    ],
}
