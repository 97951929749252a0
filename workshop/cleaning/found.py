"""A look at all that a seat has. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from workshop.cleaning.steps import steps
from workshop.cleaning.things import REFUSALS, Stranger, Thing, why


@dataclass
class Found:
    """What a look found.

    things: of the seat. strangers: with a name like the seat's, and not proved to be the seat's.
    unseen: kind -> why it could not be looked at.
    """

    things: list[Thing] = field(default_factory=list)
    strangers: list[Stranger] = field(default_factory=list)
    unseen: dict[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many things of the seat there are."""
        return sum(one.count for one in self.things)

    @property
    def usd_per_month(self) -> float:
        """What they cost a month, as far as prices are known."""
        return sum(one.usd_per_month or 0.0 for one in self.things)

    def of(self, kind: str) -> list[Thing]:
        """The things of one kind."""
        return [one for one in self.things if one.kind == kind]

    def table(self):
        """A pandas table: a row for each kind, with how many, bytes, and USD a month."""
        import pandas as pd

        rows = []
        for kind in dict.fromkeys(one.kind for one in self.things):
            count, size, usd = totals(self.of(kind))
            shown = "not told" if size is None else f"{size:,}"
            rows.append((kind, count, shown, "not known" if usd is None else f"{usd:.2f}"))
        columns = ["kind", "how many", "bytes", "USD a month"]
        return pd.DataFrame(rows, columns=columns).set_index("kind")


def find(session) -> Found:
    """All that the seat has, in the order in which it would be deleted. Changes nothing."""
    found = Found()
    for step in steps(session):
        try:
            one = step.find()
        except REFUSALS as error:
            found.unseen[step.kind] = why(error)
            continue
        found.things += one.ours
        found.strangers += one.strangers
    return found


def totals(things: list[Thing]) -> tuple[int, int | None, float | None]:
    """(how many, bytes, USD a month) together; None where one of them is not known."""
    sizes = [one.size for one in things]
    costs = [one.usd_per_month for one in things]
    return (
        sum(one.count for one in things),
        None if None in sizes else sum(sizes),
        None if None in costs else sum(costs),
    )
