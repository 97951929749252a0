"""Plausible wrong answers to the exercises of lesson 02, and what each must be told."""

import math


def no_modulo(rank, step, world_size):
    return rank - step - 1, rank - step - 2


def ends_with_the_next_chunk(rank, step, world_size):
    return (rank - step) % world_size, (rank - step - 1) % world_size


def always_its_own(rank, step, world_size):
    return rank, (rank - 1) % world_size


def walks_with_the_step(rank, step, world_size):
    return (rank + step) % world_size, (rank + step - 1) % world_size


def the_other_way_round(rank, step, world_size):
    return (rank + step + 1) % world_size, (rank + step + 2) % world_size


def only_to_send(rank, step, world_size):
    return (rank - step - 1) % world_size


def sends_first(vector):
    import torch
    import torch.distributed as dist

    rank, n = dist.get_rank(), dist.get_world_size()
    rows = torch.zeros(n, len(vector), dtype=vector.dtype)
    rows[rank] = vector
    for step in range(n - 1):
        dist.send(rows[(rank - step) % n], (rank + 1) % n)
        dist.recv(rows[(rank - step - 1) % n], (rank - 1) % n)
    return rows


def one_step_only(vector):
    import torch
    import torch.distributed as dist

    rank, n = dist.get_rank(), dist.get_world_size()
    rows = torch.zeros(n, len(vector), dtype=vector.dtype)
    rows[rank] = vector
    sending = dist.isend(rows[rank], (rank + 1) % n)
    dist.recv(rows[(rank - 1) % n], (rank - 1) % n)
    sending.wait()
    return rows


def as_they_arrive(vector):
    import torch
    import torch.distributed as dist

    rank, n = dist.get_rank(), dist.get_world_size()
    rows = [vector]
    for _ in range(n - 1):
        arriving = torch.empty_like(vector)
        sending = dist.isend(rows[-1], (rank + 1) % n)
        dist.recv(arriving, (rank - 1) % n)
        sending.wait()
        rows.append(arriving)
    return torch.stack(rows)


def with_the_library(vector):
    import torch
    import torch.distributed as dist

    rows = [torch.empty_like(vector) for _ in range(dist.get_world_size())]
    dist.all_gather(rows, vector)
    return torch.stack(rows)


def _step(name, n, n_bytes, compute, alpha, beta):
    steps = 2 * (n - 1) if name != "tree" else 2 * math.ceil(math.log2(n))
    return compute / n + steps * (alpha + beta * (n_bytes / n if name == "ring" else n_bytes))


def _least(cost, n_bytes, compute, alpha, beta, most, names=("naive", "tree", "ring")):
    choices = [(name, n) for name in names for n in range(2, most + 1)]
    return min(choices, key=lambda choice: cost(*choice, n_bytes, compute, alpha, beta))


def always_a_ring(*case):
    return _least(_step, *case, names=("ring",))


def as_many_as_there_are(n_bytes, compute, alpha, beta, most):
    return "ring", most


def never_alone(*case):
    return _least(_step, *case)


def forgets_to_compute(n_bytes, compute, alpha, beta, most):
    return _least(_step, n_bytes, 0, alpha, beta, most)


def alone(n_bytes, compute, alpha, beta, most):
    return "none", 1


def only_the_ranks(n_bytes, compute, alpha, beta, most):
    return 4


def by_its_other_name(vector):
    """torch.distributed takes its functions from this module."""
    import torch
    import torch.distributed as dist
    from torch.distributed import distributed_c10d

    rows = [torch.empty_like(vector) for _ in range(dist.get_world_size())]
    distributed_c10d.all_gather(rows, vector)
    return torch.stack(rows)


def all_to_all(vector):
    import torch
    import torch.distributed as dist

    rows = torch.empty(dist.get_world_size(), len(vector), dtype=vector.dtype)
    dist.all_to_all_single(rows, vector.repeat(len(rows), 1))
    return rows


def objects(vector):
    import torch
    import torch.distributed as dist

    rows = [[vector] for _ in range(dist.get_world_size())]
    for rank, row in enumerate(rows):
        dist.broadcast_object_list(row, rank)
    return torch.stack([row for [row] in rows])


def with_all_reduce(weights, gradient, momentum, learning_rate):
    import torch.distributed as dist

    rank, n = dist.get_rank(), dist.get_world_size()
    dist.all_reduce(gradient)
    momentum.mul_(0.9).add_(gradient.chunk(n)[rank] / n)
    parts = list(weights.chunk(n))
    parts[rank].sub_(learning_rate * momentum)
    dist.all_gather(parts, parts[rank].clone())


def halves(weights, gradient, momentum, learning_rate, *, mean=True, memory=0.9, gather=True):
    import torch
    import torch.distributed as dist

    rank, n = dist.get_rank(), dist.get_world_size()
    summed = torch.empty_like(momentum)
    dist.reduce_scatter(summed, list(gradient.chunk(n)))
    momentum.mul_(memory).add_(summed / n if mean else summed)
    parts = list(weights.chunk(n))
    parts[rank].sub_(learning_rate * momentum)
    if gather:
        dist.all_gather(parts, parts[rank].clone())


def the_sum(*step):
    halves(*step, mean=False)


def without_momentum(*step):
    halves(*step, memory=0)


def without_all_gather(*step):
    halves(*step, gather=False)


def anothers_part(weights, gradient, momentum, learning_rate):
    halves(weights.flip(0), gradient, momentum, learning_rate)


WRONG = {
    "02.1": [
        (no_modulo, r"there is no chunk -\d.* Use % world_size"),
        (ends_with_the_next_chunk, "It was to be chunk 0: begin with another chunk"),
        (always_its_own, "they would count twice"),
        (walks_with_the_step, r"ranks \[.*\] only. Send on, in each step, the chunk"),
        (the_other_way_round, r"rank \d sends chunk \d, but rank \d takes"),
        (only_to_send, "is not two numbers"),
    ],
    "02.2": [
        (one_step_only, r"row \d does not hold rank \d's vector.*N - 1"),
        (as_they_arrive, r"has all vectors, but row \d is not rank \d's"),
        # The last: ranks that fail or hang are ended.
        (with_the_library, "dist.all_gather is what you build here"),
        (by_its_other_name, "dist.all_gather is what you build here"),
        (all_to_all, "dist.all_to_all_single is what you build here"),
        (objects, "dist.broadcast_object_list is what you build here"),
        (sends_first, "wait for each other forever.* dist.isend"),
    ],
    "02.3": [
        (always_a_ring, "Count the tree's steps|Try every algorithm"),
        (as_many_as_there_are, "try every number|compare with it"),
        (never_alone, "sends nothing: compare with it, too"),
        (forgets_to_compute, "add compute / ranks"),
        (alone, "divide compute by the ranks"),
        (only_the_ranks, "is no answer"),
    ],
    "02.4": [
        (with_all_reduce, "calls all_reduce. Use the two halves"),
        (the_sum, "times too far: a reduce-scatter adds"),
        (without_momentum, "trains without momentum"),
        (without_all_gather, "an all-gather of the weights is missing"),
        (anothers_part, "has other weights than one process"),
    ],
}
