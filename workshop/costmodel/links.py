"""What a message costs: alpha seconds, and beta seconds for each byte."""

from __future__ import annotations

from dataclasses import dataclass


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

    alone: one message travels. busy: `at_once` messages travel. Between the two, and beyond
    them, a straight line.
    """

    alone: Link
    busy: Link
    at_once: int

    def seconds(self, n_bytes: float, messages: int) -> float:
        """How long `messages` messages of n_bytes take, sent at the same time."""
        one, all_of_them = self.alone.seconds(n_bytes), self.busy.seconds(n_bytes)
        share = (messages - 1) / (self.at_once - 1) if self.at_once > 1 else 0.0
        return one + share * (all_of_them - one)

    @classmethod
    def one_wire(cls, link: Link) -> SharedLinks:
        """A wire that all messages must pass: n of them take n times the bytes' time."""
        return cls(alone=link, busy=Link(link.alpha, 2 * link.beta), at_once=2)

    @classmethod
    def one_each(cls, link: Link) -> SharedLinks:
        """A link for every rank: messages do not hinder each other."""
        return cls(alone=link, busy=link, at_once=1)
