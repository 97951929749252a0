"""What the tests of scripts/demos/collectives run on every rank. torch is imported there only."""

_groups = {}


def compare(algorithm, members, shape, kind, seed):
    """(ours, torch's) sums of random numbers over the members; None on a rank that is not one."""
    from collectives.timing import algorithm_of

    return _compare(algorithm_of(algorithm), members, shape, kind, seed)


def compare_with_an_empty_message(number, shape, kind, seed):
    """The same with a ring in which every rank's message of this number holds only zeros."""
    from collectives import ring

    whole, sent = ring.send, []

    def send(tensor, *place):
        sent.append(None)
        whole(tensor * 0 if len(sent) - 1 == number else tensor, *place)

    ring.send = send
    try:
        return _compare(ring.all_reduce, None, shape, kind, seed)
    finally:
        ring.send = whole


def steps_of_ring(members):
    """How often a ring calls on_step."""
    import torch
    from collectives import ring

    called, group = [], _group_of(members)
    if group is not NOT_IN:
        ring.all_reduce(torch.ones(8), group, on_step=lambda: called.append(None))
    return len(called)


def reduce_scattered(length):
    """(this rank's chunk after our reduce-scatter, the same chunk of torch's sum)."""
    import torch
    import torch.distributed as dist
    from collectives import ring

    rank, world_size = dist.get_rank(), dist.get_world_size()
    tensor = torch.arange(length) * (rank + 1)
    whole = tensor.clone()
    ring.reduce_scatter(tensor)
    dist.all_reduce(whole)
    return tensor.tensor_split(world_size)[rank], whole.tensor_split(world_size)[rank]


def sum_with_gaps(algorithm):
    """What an all-reduce says of a tensor whose memory has gaps."""
    import torch
    from collectives.timing import algorithm_of

    try:
        algorithm_of(algorithm)(torch.ones(4, 4)[:, :2])
    except ValueError as error:
        return str(error)


def _compare(all_reduce, members, shape, kind, seed):
    import torch
    import torch.distributed as dist

    group = _group_of(members)
    if group is NOT_IN:
        return None
    generator = torch.Generator().manual_seed(1000 * seed + dist.get_rank())
    numbers = torch.rand(shape, generator=generator, dtype=torch.float64) * 2000 - 1000
    ours = numbers.to(getattr(torch, kind))
    theirs = ours.clone()
    dist.all_reduce(theirs, group=group)
    all_reduce(ours, group=group)
    return ours, theirs


NOT_IN = object()


def _group_of(members):
    """The group of these ranks; None: of all. Every rank must ask for it."""
    import torch.distributed as dist

    if members is None:
        return None
    if members not in _groups:
        _groups[members] = dist.new_group(members)
    return _groups[members] if dist.get_rank() in members else NOT_IN
