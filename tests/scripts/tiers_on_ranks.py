"""What the tests of the two-tier algorithms run on every rank. torch is imported there only."""


def sums(algorithm, per_instance, ours, group=None):
    """(ours, torch's) sums of the same tensors over the group's ranks."""
    import torch.distributed as dist
    from collectives.tiers import placed
    from collectives.timing import algorithm_of

    theirs = ours.clone()
    dist.all_reduce(theirs, group=group)
    with placed(per_instance):
        algorithm_of(algorithm)(ours, group=group)
    return ours, theirs


def compare_all(cases):
    """For each case (ours, torch's) of its all-reduce; None where this rank takes no part.

    cases: (algorithm, world_size, ranks_per_instance, length, kind); the first world_size ranks
    take part. Numbers are whole and small, so that every kind adds them up exactly.
    """
    import torch
    import torch.distributed as dist

    groups = {n: dist.new_group(range(n)) for n in sorted({case[1] for case in cases})}
    found = []
    for algorithm, world_size, per_instance, length, kind in cases:
        if dist.get_rank() >= world_size:
            found.append(None)
            continue
        generator = torch.Generator().manual_seed(1000 * length + dist.get_rank())
        numbers = torch.randint(-99, 100, (length,), generator=generator)
        numbers = numbers.to(getattr(torch, kind))
        found.append(sums(algorithm, per_instance, numbers, groups[world_size]))
    return found


def compare_fractions(algorithm, per_instance, length, kind):
    """(ours, torch's) sums of numbers that are not whole, over all ranks."""
    import torch
    import torch.distributed as dist

    torch.manual_seed(dist.get_rank())
    numbers = torch.rand(length, dtype=torch.float64).to(getattr(torch, kind))
    return sums(algorithm, per_instance, numbers)


def compare_in_chunks(length, chunk_bytes, per_instance):
    """(ours, torch's) of a two-tier all-reduce, cut into chunks of so many bytes."""
    import torch
    import torch.distributed as dist
    from collectives import two_tier

    whole, two_tier.CHUNK_BYTES = two_tier.CHUNK_BYTES, chunk_bytes
    try:
        return sums("two_tier", per_instance, torch.arange(length) * (dist.get_rank() + 1))
    finally:
        two_tier.CHUNK_BYTES = whole


def tiers_at_once():
    """Whether a chunk was added up inside while another crossed, by (start, end) of each step."""
    import threading
    import time

    import torch
    from collectives import ring, two_tier
    from collectives.tiers import placed

    spans = {"reduce_scatter": [], "all_reduce": []}
    kept = {name: getattr(ring, name) for name in spans}
    inside = threading.current_thread()

    def watched(name):
        def step(*arguments, **named):
            began = time.perf_counter()
            if name == "all_reduce":
                time.sleep(0.05)  # a slow network
            kept[name](*arguments, **named)
            if (name == "reduce_scatter") == (threading.current_thread() is inside):
                spans[name].append((began, time.perf_counter()))

        return step

    for name in spans:
        setattr(two_tier.ring, name, watched(name))
    try:
        with placed(4):
            two_tier.all_reduce(torch.zeros(4 * two_tier.CHUNK_BYTES // 4))
    finally:
        for name, function in kept.items():
            setattr(ring, name, function)
    return spans


def compare_in_a_group(algorithm, members, per_instance):
    """The same in a group whose ranks' numbers are not those among all."""
    import torch
    import torch.distributed as dist

    group = dist.new_group(members)
    if dist.get_rank() not in members:
        return None
    return sums(algorithm, per_instance, torch.arange(1001) * (dist.get_rank() + 1), group)


def compare_with_an_empty_message(algorithm, number, per_instance):
    """compare_all with one case, where every rank's message of this number holds only zeros."""
    import torch
    import torch.distributed as dist
    from collectives import herring, ring

    whole, sent = ring.send, []
    exchange = herring.exchange

    def emptied(tensor):
        sent.append(None)
        return tensor * 0 if len(sent) - 1 == number else tensor

    ring.send = lambda tensor, *place: whole(emptied(tensor), *place)
    herring.exchange = lambda tensor, *place: exchange(emptied(tensor), *place)
    try:
        return sums(algorithm, per_instance, torch.arange(24) * (dist.get_rank() + 1))
    finally:
        ring.send, herring.exchange = whole, exchange


def refused(algorithm, variables):
    """What an all-reduce says where the launcher's variables are as given."""
    import os

    import torch
    from collectives.timing import algorithm_of

    before = dict(os.environ)
    os.environ.pop("LOCAL_WORLD_SIZE", None)
    os.environ.update(variables)
    try:
        algorithm_of(algorithm)(torch.ones(8))
    except ValueError as error:
        return str(error)
    finally:
        os.environ.clear()
        os.environ.update(before)


def places(per_instance):
    """The instances and their ranks, and the hops of the blind ring."""
    from collectives.blind_ring import order_of_hops
    from collectives.placement import instances
    from collectives.tiers import placed

    with placed(per_instance):
        return instances(), order_of_hops(instances())


def seconds(tier, pairs, per_instance):
    """Timed messages of a tier."""
    from collectives.tiers import message_seconds, placed

    with placed(per_instance):
        return message_seconds(tier, pairs, 4000, 2, 3)
