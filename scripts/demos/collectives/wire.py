"""Send and receive, the only calls that the algorithms here are made of; and what was sent.

A rank's number is its place in `group`, as torch.distributed.new_group made it; None: all ranks.
"""

from collections.abc import Sequence
from threading import Lock

import torch
import torch.distributed as dist

Order = Sequence[int] | None  # some of a group's ranks, first to last; None: all, by number

# What this rank has passed since the last `start_counting`: bytes of tensors, messages.
traffic = dict.fromkeys(("sent_bytes", "received_bytes", "messages_sent", "messages_received"), 0)
_counting = Lock()  # an algorithm may send from several threads


def send(tensor: torch.Tensor, to: int, group=None) -> None:
    """Send to one rank; return when it has taken the whole tensor. An empty one is not sent."""
    if tensor.numel():
        _count("sent", tensor)
        dist.send(tensor, _number_among_all(to, group), group)


def receive(tensor: torch.Tensor, source: int, group=None) -> None:
    """Wait for a tensor of this size and type from one rank, and write it over `tensor`."""
    if tensor.numel():
        _count("received", tensor)
        dist.recv(tensor, _number_among_all(source, group), group)


def begin_to_receive(tensor: torch.Tensor, source: int, group=None):
    """As receive, but return at once; what it returns has a wait(), until the tensor is here.

    Begin early: gloo's sender waits for the receiver's word that it is ready, and over a slow link
    that word waits behind everything that travels the same way.
    """
    if tensor.numel():
        _count("received", tensor)
        return dist.irecv(tensor, _number_among_all(source, group), group)
    nothing: torch.futures.Future = torch.futures.Future()
    nothing.set_result(None)
    return nothing


def exchange(outgoing, to: int, incoming, source: int, group=None) -> None:
    """Send to one rank and receive from another at the same time.

    If all ranks first sent and then received, each would wait for ever for the next one to
    receive. So the receive begins first, and is waited for after the send.
    """
    received = begin_to_receive(incoming, source, group)
    send(outgoing, to, group)
    received.wait()


def place_in(order: Order, group=None) -> tuple[int, Sequence[int]]:
    """(this rank's place in `order`, the ranks in that order)."""
    order = range(dist.get_world_size(group)) if order is None else order
    return order.index(dist.get_rank(group)), order


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as a vector. Raises ValueError if the tensor's memory has gaps."""
    if not tensor.is_contiguous():
        raise ValueError("The tensor is not contiguous in memory: pass tensor.contiguous().")
    return tensor.detach().view(-1)


def start_counting() -> None:
    """Set this rank's traffic to nothing."""
    traffic.update(dict.fromkeys(traffic, 0))


def _count(way: str, tensor: torch.Tensor) -> None:
    with _counting:
        traffic[f"{way}_bytes"] += tensor.nbytes
        traffic[f"messages_{way}"] += 1


def _number_among_all(rank: int, group) -> int:
    return rank if group is None else dist.get_global_rank(group, rank)
