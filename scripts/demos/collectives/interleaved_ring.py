"""The ring of ring.py in an order that ignores the topology: every hop crosses the network.

Ranks 0 to 3 on one instance and 4 to 7 on another make the ring 0, 4, 1, 5, 2, 6, 3, 7. Each
rank passes what it passes in any ring, but now all of it leaves the instance: the instance's
link carries as many messages in each step as the instance has ranks, and not one.
"""

from itertools import zip_longest

import torch

from collectives import ring
from collectives.placement import instances


def all_reduce(tensor: torch.Tensor, group=None) -> None:
    """Replace `tensor` on every rank by the sum over all ranks, element by element.

    tensor: contiguous, on the CPU, of the same shape and type on every rank.
    """
    ring.all_reduce(tensor, group, order=order_of_hops(instances(group)))


def order_of_hops(instances: list[list[int]]) -> list[int]:
    """One rank of each instance in turn, until all have had theirs. instances: ranks of each."""
    turns = zip_longest(*instances)
    return [rank for turn in turns for rank in turn if rank is not None]
