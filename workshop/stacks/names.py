"""Names, order and tags of the stacks."""

from __future__ import annotations

from collections.abc import Iterable

from workshop.stacks.errors import StackError

STACKS = ("storage", "roles")  # what every lesson needs; costs nothing while nothing is stored
# Each may use the exports of those before it. The last two cost money by the hour, so they are
# made only when they are named.
ALL = (*STACKS, "network", "notebook")
NEEDS = {"roles": ("storage",), "notebook": ("storage", "roles")}  # whose exports a stack imports


def stack_name(seat: str, name: str) -> str:
    """The name of a seat's stack in CloudFormation."""
    return f"workshop-{seat}-{name}"


def tags(seat: str) -> list[dict[str, str]]:
    """The tags of everything that the kit makes."""
    return [{"Key": "workshop", "Value": "data-parallel"}, {"Key": "seat", "Value": seat}]


def in_order(names: Iterable[str]) -> list[str]:
    """The names, each once, in the order in which they are made. Raises StackError."""
    wanted = set(names)
    if unknown := sorted(wanted - set(ALL)):
        raise StackError(f"There is no stack {unknown[0]!r}. There are: {', '.join(ALL)}.")
    return [name for name in ALL if name in wanted]
