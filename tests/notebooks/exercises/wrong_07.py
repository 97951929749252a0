"""Plausible wrong answers to lesson 07's exercises, and what the check says of each."""

import math

import torch
import torch.distributed as dist

from workshop.measure.alpha_beta import Link


def always_smddp(job):
    return "smddp"


def any_version(job):
    p4d = job["instance_type"].startswith("ml.p4d")
    return "smddp" if p4d and job["framework"] == "pytorch" else "nccl"


def versions_as_texts(job):
    version = ".".join(map(str, job["version"]))
    p4d = job["instance_type"].startswith("ml.p4d")
    return "smddp" if p4d and version <= "2.5.1" else "nccl"


def groups_forgotten(job):
    if job["gpus"] == 0:
        return "gloo"
    p4d = job["instance_type"].startswith("ml.p4d")
    return "smddp" if p4d and job["version"] <= (2, 5, 1) else "nccl"


def thin(shape, rank):
    return (shape[0] + math.prod(shape[1:])) * rank


def always_thin(shapes, rank):
    return 4 * sum(thin(shape, rank) for shape in shapes)


def numbers_only(shapes, rank):
    return sum(
        thin(shape, rank)
        if len(shape) > 1 and 2 * thin(shape, rank) < math.prod(shape)
        else math.prod(shape)
        for shape in shapes
    )


def two_dimensions_only(shapes, rank):
    return 4 * sum(
        thin(shape, rank)
        if len(shape) == 2 and 2 * thin(shape, rank) < math.prod(shape)
        else math.prod(shape)
        for shape in shapes
    )


def all_sent(spans):
    return sum(end - start for kind, start, end in spans if kind == "all-reduce")


def after_the_last_computing(spans):
    done = max(end for kind, _, end in spans if kind == "compute")
    return max(0, max(end for kind, _, end in spans if kind == "all-reduce") - done)


def each_bucket_alone(spans):
    done = max(end for kind, _, end in spans if kind == "compute")
    return sum(max(0, end - max(start, done)) for kind, start, end in spans if kind == "all-reduce")


def one_bucket(layers, limit, alpha, beta):
    return sum(ms for ms, _ in layers) + alpha + beta * sum(size for _, size in layers)


def rest_forgotten(layers, limit, alpha, beta):
    computed = sent = bucket = 0
    for ms, size in layers:
        computed, bucket = computed + ms, bucket + size
        if bucket >= limit:
            sent, bucket = max(sent, computed) + alpha + beta * bucket, 0
    return sent


def link_always_free(layers, limit, alpha, beta):
    computed = bucket = sent = 0
    for number, (ms, size) in enumerate(layers):
        computed, bucket = computed + ms, bucket + size
        if bucket >= limit or number == len(layers) - 1:
            sent, bucket = computed + alpha + beta * bucket, 0
    return sent


def errors_of(messages, rings, part=True):
    link = Link.fit(messages)
    return {
        (n, size): 2 * (n - 1) * link.seconds(size / n if part else size) / seconds - 1
        for (n, size), seconds in rings.items()
    }


def largest_above(messages, rings):
    errors = errors_of(messages, rings)
    case = max(errors, key=errors.get)
    return case, errors[case]


def without_sign(messages, rings):
    errors = errors_of(messages, rings)
    case = max(errors, key=lambda case: abs(errors[case]))
    return case, abs(errors[case])


def whole_tensor(messages, rings):
    errors = errors_of(messages, rings, part=False)
    case = max(errors, key=lambda case: abs(errors[case]))
    return case, errors[case]


def error_alone(messages, rings):
    return max(errors_of(messages, rings).values(), key=abs)


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


RIGHT = {"07.6": [by_leaders]}
WRONG = {
    "07.1": [
        (always_smddp, "No image after PyTorch 2.5.1"),
        (any_version, "No image after PyTorch 2.5.1"),
        (versions_as_texts, "compare tuples"),
        (groups_forgotten, "no new_group"),
    ],
    "07.2": [
        (always_thin, "travel as they are"),
        (numbers_only, "4 bytes"),
        (two_dimensions_only, "but the first are the columns"),
    ],
    "07.3": [
        (all_sent, "computing hides some"),
        (after_the_last_computing, "nothing is computed"),
        (each_bucket_alone, "expose that time once"),
    ],
    "07.4": [
        (one_bucket, "while later layers compute"),
        (rest_forgotten, "With one bucket"),
        (link_always_free, "the one before it is sent"),
    ],
    "07.5": [
        (largest_above, "Compare absolute values"),
        (without_sign, "the sign"),
        (whole_tensor, "1 / N of the tensor"),
        (error_alone, "as a pair"),
    ],
    "07.6": [
        (flat, "without a group"),
        (all_of_it_across, "are enough"),
        (inside_only, "nothing went inter-node"),
        (not_gathered, "join them"),
        (nothing_returned, "Return a tensor"),
    ],
}
