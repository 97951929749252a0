"""What things cost while they stand there, used or not: endpoints, gateways, what is stored.

    workshop.standing.price("nat-gateway").per_month(2)        # USD for two of them

The prices are in prices.toml, dated, for one region. A thing that it does not have has no price
here: `price` says so, and nobody guesses.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from workshop.costs import PRICES, PriceNotKnown, price_table

HOURS_PER_MONTH = 730  # 365 days of 24 hours, in twelve parts
GB = 10**9  # bytes; AWS counts 2**30 for some: 7 % more, far below what is known here


@dataclass(frozen=True)
class StandingPrice:
    """A price for standing there. usd: for one `per`, which is "hour" or "GB-month"."""

    name: str
    what: str
    usd: float
    per: str
    price_date: date
    source: str

    @property
    def example(self) -> float:
        """An amount for tables: one that stands, or 10 GB that are stored."""
        return 1 if self.per == "hour" else 10 * GB

    def per_month(self, amount: float = 1) -> float:
        """USD for a month. amount: how many of them; of what is stored, bytes."""
        if self.per == "hour":
            return amount * self.usd * HOURS_PER_MONTH
        return amount / GB * self.usd


def price(name: str) -> StandingPrice:
    """The price of something that stands, by its name in prices.toml ("nat-gateway", "s3").

    Raises PriceNotKnown.
    """
    known = price_table()["standing"]
    if name not in known:
        raise PriceNotKnown(
            f"{PRICES.name} has no row [standing] for {name!r}. It has: {', '.join(known)}."
        )
    row = dict(known[name])
    source = price_table()["sources"][row.pop("source")]["address"]
    return StandingPrice(name=name, source=source, **row)


def month(name: str, amount: float = 1) -> float | None:
    """USD for a month of it, or None where the price is not known."""
    try:
        return price(name).per_month(amount)
    except PriceNotKnown:
        return None


def table():
    """A pandas table of all that costs money while it stands: the dearest of a month first."""
    import pandas as pd

    rows = []
    for name in price_table()["standing"]:
        one = price(name)
        monthly = one.per_month(one.example)
        what = one.what if one.per == "hour" else f"10 GB of {one.what}"
        given = f"{one.usd:g} per {one.per}"
        rows.append((what, given, round(monthly, 2), str(one.price_date)))
    columns = ["what is there", "USD", "USD a month", "price of"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.sort_values("USD a month", ascending=False).set_index(columns[0])
