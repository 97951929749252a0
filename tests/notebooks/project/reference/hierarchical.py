"""Add up within the instance, cross the network with that, and share: chunk by chunk."""

from concurrent.futures import ThreadPoolExecutor

import ring
import torch
import torch.distributed as dist


def all_reduce(tensor: torch.Tensor, ranks_per_instance: int, chunk_bytes: int) -> None:
    local_rank = dist.get_rank() % ranks_per_instance
    first = dist.get_rank() - local_rank
    intra = range(first, first + ranks_per_instance)
    inter = range(local_rank, dist.get_world_size(), ranks_per_instance)
    values = tensor.view(-1)
    chunks = values.split(max(1, chunk_bytes // values.element_size()))
    crossing = []
    with ThreadPoolExecutor(1) as network:
        for chunk in chunks:
            ring.reduce_scatter(chunk, intra)
            part = chunk.tensor_split(ranks_per_instance)[local_rank]
            crossing.append(network.submit(_cross, part, inter))
        for chunk, crossed in zip(chunks, crossing, strict=True):
            crossed.result()
            ring.all_gather(chunk, intra)


def _cross(part: torch.Tensor, inter: range) -> None:
    ring.reduce_scatter(part, inter)
    ring.all_gather(part, inter)
