"""What an all-reduce costs: the alpha-beta model, and the bytes that every rank must pass.

A message of n bytes takes alpha + beta · n seconds. Messages of one round travel at the same
time, rounds follow each other. So an algorithm is a list of rounds, and all else is sums:

    link = Link.through((8, 40e-6), (8_000_000, 4e-3))           # two measured points
    predicted_seconds("ring", 1_000_000, world_size=4, links=link)
    bytes_by_rank("naive", 1_000_000, world_size=4)

The model knows nothing of the time to add numbers, nor of anything else that a machine does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Message:
    """n_bytes from rank `source` to rank `to`."""

    source: int
    to: int
    n_bytes: float


Rounds = list[list[Message]]


@dataclass(frozen=True)
class Link:
    """The way between two ranks. alpha: seconds per message. beta: seconds per byte."""

    alpha: float
    beta: float

    def seconds(self, n_bytes: float) -> float:
        """How long one message takes."""
        return self.alpha + self.beta * n_bytes

    @classmethod
    def through(cls, small: tuple[int, float], large: tuple[int, float]) -> Link:
        """The link whose line goes through two measured points (bytes, seconds).

        Raises ValueError if the points are in the wrong order, or the larger message was faster.
        """
        (few, quick), (many, slow) = small, large
        if not 0 <= few < many:
            raise ValueError(f"{few} and {many} bytes: the first must be the smaller message.")
        if not 0 < quick < slow:
            raise ValueError(
                f"{many} bytes took {slow:.3g} s and {few} bytes {quick:.3g} s: the larger "
                "message must take longer. Is the machine busy? Measure again, with more repeats."
            )
        beta = (slow - quick) / (many - few)
        return cls(alpha=max(0.0, quick - beta * few), beta=beta)


@dataclass(frozen=True)
class SharedLinks:
    """Links that get slower when several work at the same time, as on one machine's cores.

    alone: one message travels. busy: `at_once` messages travel. Between the two, a straight line.
    """

    alone: Link
    busy: Link
    at_once: int

    def seconds(self, n_bytes: float, messages: int) -> float:
        """How long `messages` messages of n_bytes take, sent at the same time."""
        one, all_of_them = self.alone.seconds(n_bytes), self.busy.seconds(n_bytes)
        share = (messages - 1) / (self.at_once - 1) if self.at_once > 1 else 0.0
        return one + share * (all_of_them - one)


def naive(n_bytes: float, world_size: int) -> Rounds:
    """Everything to rank 0, one after the other; the sum back to all."""
    others = range(1, world_size)
    up = [[Message(rank, 0, n_bytes)] for rank in others]
    return up + [[Message(0, rank, n_bytes)] for rank in others]


def tree(n_bytes: float, world_size: int) -> Rounds:
    """Sums up a binomial tree to rank 0, and down again."""
    up, distance = [], 1
    while distance < world_size:
        senders = range(distance, world_size, 2 * distance)
        up.append([Message(rank, rank - distance, n_bytes) for rank in senders])
        distance *= 2
    return up + [[Message(one.to, one.source, n_bytes) for one in level] for level in reversed(up)]


def ring(n_bytes: float, world_size: int) -> Rounds:
    """Reduce-scatter, then all-gather: a chunk from every rank to the next, in every round."""
    chunk = n_bytes / world_size
    once = [Message(rank, (rank + 1) % world_size, chunk) for rank in range(world_size)]
    return [once] * (2 * (world_size - 1))


ALGORITHMS: dict[str, Callable[[float, int], Rounds]] = {
    "naive": naive,
    "tree": tree,
    "ring": ring,
}


def predicted_seconds(
    algorithm: str, n_bytes: float, world_size: int, links: Link | SharedLinks
) -> float:
    """Seconds of one all-reduce of n_bytes.

    links: a Link if every rank has one to itself, as on a network of instances; SharedLinks if
    messages of the same round hinder each other.
    """
    total = 0.0
    for messages in rounds(algorithm, n_bytes, world_size):
        largest = max(one.n_bytes for one in messages)
        if isinstance(links, SharedLinks):
            total += links.seconds(largest, len(messages))
        else:
            total += links.seconds(largest)
    return total


def bytes_by_rank(algorithm: str, n_bytes: float, world_size: int) -> list[tuple[float, float]]:
    """(bytes sent, bytes received) of every rank in one all-reduce of n_bytes."""
    sent, received = [0.0] * world_size, [0.0] * world_size
    for messages in rounds(algorithm, n_bytes, world_size):
        for one in messages:
            sent[one.source] += one.n_bytes
            received[one.to] += one.n_bytes
    return list(zip(sent, received, strict=True))


def busiest_link_bytes(algorithm: str, n_bytes: float, world_size: int) -> float:
    """Bytes over the busiest rank's own link to the network, in the busier direction."""
    return max(max(one) for one in bytes_by_rank(algorithm, n_bytes, world_size))


def rounds(algorithm: str, n_bytes: float, world_size: int) -> Rounds:
    """An algorithm's messages, round by round. Raises ValueError for an unknown name."""
    if algorithm not in ALGORITHMS:
        raise ValueError(f"{algorithm!r} is not known. There are: {', '.join(ALGORITHMS)}.")
    if world_size < 1 or n_bytes < 0:
        raise ValueError(f"{n_bytes} bytes on {world_size} ranks: give at least one rank.")
    return ALGORITHMS[algorithm](n_bytes, world_size)
