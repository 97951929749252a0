"""Plausible wrong answers to lesson 07's exercises, and what the check says of each."""

import torch
import torch.distributed as dist


def converted_first(gradients, world_size):
    return gradients.to(torch.float16) / world_size


def not_divided(gradients, world_size):
    return gradients.to(torch.float16)


def in_32_bits(gradients, world_size):
    return gradients / world_size


def brain_float(gradients, world_size):
    return (gradients / world_size).to(torch.bfloat16)


def in_place(gradients, world_size):
    gradients /= world_size
    return gradients.to(torch.float16)


def divided_by_the_root_twice(gradients, world_size):
    """Averages as the right one does, and overflows sooner."""
    return (gradients / world_size**0.5).to(torch.float16) / world_size**0.5


def divided_by_two(gradients, world_size):
    return (gradients / 2).to(torch.float16)


def ratio(instances, ranks_each):
    ranks = instances * ranks_each
    return ((ranks - 1) / ranks) / ((instances - 1) / instances)


def upside_down(instances, ranks_each):
    return 1 / ratio(instances, ranks_each) if instances > 1 else 1


def as_many_as_ranks(instances, ranks_each):
    return ranks_each


def one_instance_forgotten(instances, ranks_each):
    return ratio(instances, ranks_each)


def flat(tensor, intra_node, inter_node):
    dist.all_reduce(tensor)
    return tensor


def all_of_it_across(tensor, intra_node, inter_node):
    dist.all_reduce(tensor, group=intra_node)
    dist.all_reduce(tensor, group=inter_node)
    return tensor


def inside_only(tensor, intra_node, inter_node):
    dist.all_reduce(tensor, group=intra_node)
    return tensor


def not_gathered(tensor, intra_node, inter_node):
    parts = list(tensor.chunk(dist.get_world_size(intra_node)))
    part = torch.empty_like(parts[0])
    dist.reduce_scatter(part, parts, group=intra_node)
    dist.all_reduce(part, group=inter_node)
    return part


def nothing_returned(tensor, intra_node, inter_node):
    dist.all_reduce(tensor, group=intra_node)


def by_leaders(tensor, intra_node, inter_node):
    """One rank of each instance sends for all: as many bytes over the instance's link."""
    first = dist.get_global_rank(intra_node, 0)
    dist.reduce(tensor, first, group=intra_node)
    if dist.get_rank() == first:
        dist.all_reduce(tensor, group=inter_node)
    dist.broadcast(tensor, first, group=intra_node)
    return tensor


RIGHT = {"07.3": [by_leaders]}
WRONG = {
    "07.1": [
        (converted_first, "Divide before you convert"),
        (not_divided, "who divides"),
        (in_32_bits, "float32, and float16 was asked for"),
        (brain_float, "bfloat16, and float16 was asked for. It has 16 bits, too"),
        (divided_by_the_root_twice, "infinite before the sum"),
        (in_place, "belong to DDP"),
        (divided_by_two, "the mean is"),
    ],
    "07.2": [
        (upside_down, "upside down"),
        (as_many_as_ranks, "only the ranks at its ends"),
        (one_instance_forgotten, "divides by zero"),
    ],
    "07.3": [
        (flat, "without a group"),
        (all_of_it_across, "are enough"),
        (inside_only, "nothing went inter-node"),
        (not_gathered, "join them"),
        (nothing_returned, "Return a tensor"),
    ],
}
