"""Plausible wrong answers to the exercises of lesson 02, and what each must be told."""


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


def one_half(n_bytes, world_size, alpha, beta):
    return (world_size - 1) * (alpha + beta * n_bytes / world_size)


def whole_tensors(n_bytes, world_size, alpha, beta):
    return 2 * (world_size - 1) * (alpha + beta * n_bytes)


def a_step_too_many(n_bytes, world_size, alpha, beta):
    return 2 * world_size * (alpha + beta * n_bytes / world_size)


def alpha_once(n_bytes, world_size, alpha, beta):
    return alpha + 2 * (world_size - 1) * beta * n_bytes / world_size


def whole_bytes(n_bytes, world_size, alpha, beta):
    return 2 * (world_size - 1) * (alpha + beta * -(-n_bytes // world_size))


def drops_the_rest(n_bytes, world_size, alpha, beta):
    return 2 * (world_size - 1) * (alpha + beta * (n_bytes // world_size))


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


def upside_down(n_bytes, world_size, alpha, beta):
    return 2 * (world_size - 1) * (alpha + n_bytes / world_size / (beta or 1))


RIGHT = {"02.3": [whole_bytes]}
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
        (one_half, "is one half"),
        (whole_tensors, "is the naive way"),
        (a_step_too_many, "a step too many in each half"),
        (alpha_once, "pays alpha once"),
        (drops_the_rest, "divide with /"),
        (upside_down, "count the steps"),
    ],
}
