"""Who sends what to whom, round by round; and which rank lives on which instance."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Message:
    """n_bytes from rank `source` to rank `to`."""

    source: int
    to: int
    n_bytes: float


# Messages of one round travel at the same time; rounds follow each other.
Rounds = list[list[Message]]


@dataclass(frozen=True)
class Placement:
    """Ranks on instances, instance by instance, as mpirun and torchrun place them.

    Raises ValueError unless both are whole numbers from 1 on.
    """

    instances: int
    ranks_per_instance: int

    def __post_init__(self) -> None:
        for name in ("instances", "ranks_per_instance"):
            count = getattr(self, name)
            if not isinstance(count, int) or count < 1:
                raise ValueError(f"{name} is {count!r}: give a whole number, at least 1.")

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        return self.instances * self.ranks_per_instance

    def instance_of(self, rank: int) -> int:
        """The number of the instance that `rank` lives on."""
        return rank // self.ranks_per_instance

    def rank_of(self, instance: int, local_rank: int) -> int:
        """The rank at that place."""
        return instance * self.ranks_per_instance + local_rank

    def crosses(self, message: Message) -> bool:
        """Whether the message leaves its instance."""
        return self.instance_of(message.source) != self.instance_of(message.to)
