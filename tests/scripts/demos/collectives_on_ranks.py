"""What test_collectives.py runs on every rank. torch is imported there only."""

import os
from unittest import mock

NOT_IN = object()
_groups = {}


def placed(ranks_per_instance):
    """Inside the `with`, algorithms take the ranks for placed so, whatever the launcher said."""
    return mock.patch.dict(os.environ, LOCAL_WORLD_SIZE=str(ranks_per_instance))


def compare(cases):
    """For each case (ours, torch's) of its all-reduce; None where this rank takes no part.

    cases: (algorithm, members, ranks_per_instance, shape, kind, whole). members: the ranks of the
    group; whole: small whole numbers, which every kind adds up exactly; else fractions.
    """
    import torch
    import torch.distributed as dist

    results = []
    for algorithm, members, per_instance, shape, kind, whole in cases:
        group = _group_of(members)
        if group is NOT_IN:
            results.append(None)
            continue
        generator = torch.Generator().manual_seed(dist.get_rank())
        if whole:
            numbers = torch.randint(-99, 100, shape, generator=generator)
        else:
            numbers = torch.rand(shape, generator=generator, dtype=torch.float64)
        results.append(sums(algorithm, per_instance, numbers.to(getattr(torch, kind)), group))
    return results


def sums(algorithm, per_instance, ours, group=None):
    """(ours, torch's) sums of the same tensors over the group's ranks."""
    import torch.distributed as dist
    from collectives.timing import algorithm_of

    theirs = ours.clone()
    dist.all_reduce(theirs, group=group)
    with placed(per_instance):
        algorithm_of(algorithm)(ours, group=group)
    return ours, theirs


def _group_of(members):
    """The group of these ranks. Every rank must ask for it."""
    import torch.distributed as dist

    if members not in _groups:
        _groups[members] = dist.new_group(members)
    return _groups[members] if dist.get_rank() in members else NOT_IN


def compare_in_chunks(length, chunk_bytes, per_instance):
    """(ours, torch's) of a hierarchical all-reduce, cut into chunks of so many bytes."""
    import torch
    import torch.distributed as dist
    from collectives import hierarchical

    with mock.patch.object(hierarchical, "CHUNK_BYTES", chunk_bytes):
        return sums("hierarchical", per_instance, torch.arange(length) * (dist.get_rank() + 1))


def tiers_at_once():
    """(start, end) of each step of a hierarchical all-reduce of four chunks, by its name."""
    import threading
    import time

    import torch
    from collectives import hierarchical, ring

    spans = {"reduce_scatter": [], "all_reduce": []}
    originals = {name: getattr(ring, name) for name in spans}
    inside = threading.current_thread()

    def watched(name):
        def step(*arguments, **named):
            began = time.perf_counter()
            if name == "all_reduce":
                time.sleep(0.05)  # a slow network
            originals[name](*arguments, **named)
            if (name == "reduce_scatter") == (threading.current_thread() is inside):
                spans[name].append((began, time.perf_counter()))

        return step

    with placed(3), mock.patch.multiple(ring, **{name: watched(name) for name in spans}):
        hierarchical.all_reduce(torch.zeros(4 * hierarchical.CHUNK_BYTES // 4))
    return spans


def traffic(algorithm, n_bytes, world_size, per_instance):
    """What this rank passes in one all-reduce among the first ranks; see count_traffic."""
    from collectives import timing

    with placed(per_instance):
        return timing.count_traffic(algorithm, n_bytes, world_size)


def bytes_across(algorithm, n_bytes, per_instance):
    """Bytes that this rank sends to other instances in one all-reduce."""
    import torch
    import torch.distributed as dist
    from collectives import wire

    sent, dist_send, here = [], dist.send, dist.get_rank() // per_instance

    def send(tensor, to, group):
        sent.append(tensor.nbytes if to // per_instance != here else 0)
        dist_send(tensor, to, group)

    with mock.patch.object(wire.dist, "send", send):
        sums(algorithm, per_instance, torch.zeros(n_bytes // 4))
    return sum(sent)


def refused(algorithm, variables, gaps=False):
    """What an all-reduce says where the launcher's variables are as given.

    gaps: of a tensor whose memory has some.
    """
    import torch
    from collectives.timing import algorithm_of

    tensor = torch.ones(4, 4)[:, :2] if gaps else torch.ones(8)
    with mock.patch.dict(os.environ):
        os.environ.pop("LOCAL_WORLD_SIZE", None)
        os.environ.update(variables)
        try:
            algorithm_of(algorithm)(tensor)
        except ValueError as error:
            return str(error)


def seconds(per_instance, sizes):
    """Timed messages of both tiers."""
    from collectives.tiers import message_seconds

    with placed(per_instance):
        return message_seconds(sizes, 2, 3)
