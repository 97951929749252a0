"""What a look finds: things of the seat, and strangers that only bear a similar name."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from botocore.exceptions import BotoCoreError, ClientError

from workshop.account.stacks import StackError, tags
from workshop.jobs.follow import POLL_SECONDS

WAIT_SECONDS = 10 * 60  # AWS gives a job 120 s to end, and uploads what it left


class NotDeleted(Exception):
    """A thing cannot go yet; the message says why."""


# What may go wrong with one thing while the rest goes on.
REFUSALS = (ClientError, BotoCoreError, StackError, NotDeleted)


@dataclass(frozen=True)
class Thing:
    """Something that the seat has.

    kind: what it is, in the plural. count: how many, where one entry stands for several.
    size: bytes; None: AWS does not tell. usd_per_month: what it costs while it stays; None: not
    known.
    """

    kind: str
    name: str
    count: int = 1
    size: int | None = 0
    usd_per_month: float | None = 0.0
    note: str = ""


@dataclass(frozen=True)
class Stranger:
    """Something with a name like the seat's that is not proved to be the seat's."""

    kind: str
    name: str
    why: str = "not tagged as this seat's"


@dataclass
class Finding:
    """One kind of things in an account."""

    ours: list[Thing] = field(default_factory=list)
    strangers: list[Stranger] = field(default_factory=list)

    def sort(self, seat: str, thing: Thing, found: Mapping[str, str]) -> None:
        """Take a thing with the tags `found`. What another seat's tags are on is left out."""
        wanted = {one["Key"]: one["Value"] for one in tags(seat)}
        if all(found.get(key) == value for key, value in wanted.items()):
            self.ours.append(thing)
        elif found.get("workshop") != wanted["workshop"] or "seat" not in found:
            self.strangers.append(Stranger(thing.kind, thing.name))


class Step(Protocol):
    """How one kind of things is found and deleted. Both may raise REFUSALS."""

    kind: str

    def find(self) -> Finding:
        """All of this kind. Changes nothing."""

    def delete(self, thing: Thing) -> None:
        """Delete one, and wait until it is gone. One that is gone already is no error."""


def with_cost(thing: Thing, ask: Callable[[], tuple[float | None, str]]) -> Thing:
    """The thing with its USD a month and a note, as `ask` finds them out.

    Who may not ask for a price may still delete: then the cost is not known.
    """
    try:
        usd, note = ask()
    except REFUSALS as error:
        usd, note = None, f"its cost cannot be asked: {why(error)}"
    return replace(thing, usd_per_month=usd, note=note)


def wait_until_gone(session, ask: Callable[[], str | None]) -> None:
    """Wait until `ask` tells of no status any more. Raises NotDeleted after WAIT_SECONDS."""
    deadline = time.monotonic() + WAIT_SECONDS
    while status := ask():
        if time.monotonic() > deadline:
            raise NotDeleted(f"it is still {status} after {WAIT_SECONDS} s")
        time.sleep(poll_seconds(session))


def poll_seconds(session) -> float:
    """Seconds between two looks at what is on its way: the local endpoint may be asked often."""
    return POLL_SECONDS[session.target == "local"]


def as_dict(listed: list[dict]) -> dict[str, str]:
    """Tags as AWS lists them, as a dictionary."""
    return {one["Key"]: one["Value"] for one in listed}


def why(error: Exception) -> str:
    """An error in one line, with the call that was refused."""
    if isinstance(error, ClientError):
        told = error.response["Error"]
        return f"{error.operation_name}: {told.get('Code')}: {told.get('Message')}".strip()
    return str(error) or type(error).__name__
