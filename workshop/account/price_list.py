"""AWS's public price list, for a region that prices.toml does not have.

    found = price_list.read("eu-west-1")     # downloads; needs no account
    price_list.as_toml(found, "eu-west-1")   # the rows of a prices.toml for that region

AWS publishes a file for each service and region, as JSON and as CSV: five rows about the file, a
row of column names, and a row for each price
(https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/reading-service-price-list-file-for-services.html,
read 2026-11-22). The CSV has each price beside its usage type, so it is read row by row and never
held: the one for EC2, which has the NAT gateway, is some hundred megabytes.

Nobody has run this against AWS yet: the machine on which it was written has no way there.
"""

from __future__ import annotations

import csv
import io
import re
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import date

ADDRESS = (
    "https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/{offer}/current/{region}/index.csv"
)
ABOUT_ROWS = 5
REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-\d")
TIMEOUT_SECONDS = 60
# offer -> usage type, after the region's short name, such as EUW1-, where it has one -> the row's
# name in prices.toml. \1 is the instance type.
WANTED = {
    "AmazonSageMaker": {
        r"Train:(ml\.[\w.-]+)": r"\1",
        r"Host:(ml\.[\w.-]+)": r"endpoint \1",
        r"Notebk:(ml\.[\w.-]+)": r"notebook \1",
        r"Notebk:VolumeUsage\.gp2": "notebook-volume",
    },
    "AmazonVPC": {
        r"VpcEndpoint-Hours": "interface-endpoint",
        r"PublicIPv4:InUseAddress": "public-ipv4",
    },
    "AmazonEC2": {r"NatGateway-Hours": "nat-gateway"},
}
UNITS = {"hrs": "hour", "hour": "hour", "gb-mo": "GB-month"}


class PriceListError(Exception):
    """The price list cannot be read; the message says why and what to do."""


@dataclass(frozen=True)
class Price:
    """A price. name: as in prices.toml. per: "hour" or "GB-month". day: of the list's version."""

    name: str
    usd: float
    per: str
    day: date
    source: str


def read(region: str, say: Callable[[str], None] = print, opened=None) -> dict[str, Price]:
    """Download and read what the kit needs. Name -> Price.

    opened: takes an address, returns its lines; default: from the internet.
    Raises PriceListError.
    """
    if not REGION.fullmatch(region):
        raise PriceListError(f"{region!r} is not a region's name, such as eu-west-1.")
    found: dict[str, Price] = {}
    for offer in WANTED:
        address = ADDRESS.format(offer=offer, region=region)
        say(f"Reading {address}")
        try:
            with closing((opened or _lines)(address)) as lines:
                for price in parse(lines, offer, address):
                    found.setdefault(price.name, price)
        except OSError as error:
            raise PriceListError(
                f"{address}: {error}. Check the connection and the region's name; AWS has a file "
                "only for a region in which it offers the service."
            ) from error
    return found


def parse(lines: Iterable[str], offer: str, address: str = "") -> Iterator[Price]:
    """The prices on demand that the kit needs, of a service's CSV file. Raises PriceListError."""
    rows = csv.reader(lines)
    about = dict(row[:2] for row in (next(rows, []) for _ in range(ABOUT_ROWS)) if len(row) > 1)
    columns = {_plain(name): at for at, name in enumerate(next(rows, []))}
    wanted = ("termtype", "usagetype", "unit", "priceperunit", "currency", "startingrange")
    if about.get("OfferCode") != offer or not set(wanted) <= set(columns):
        raise PriceListError(
            f"{address or offer} is not the price list of {offer} as AWS documents it: after "
            f"{ABOUT_ROWS} rows about the file a row of columns was expected, with "
            f"{', '.join(wanted)}. Perhaps its form has changed."
        )
    day = date.fromisoformat(about["Publication Date"][:10])
    for row in rows:
        term, usage, unit, usd, currency, start = (row[columns[name]] for name in wanted)
        name = _name(offer, usage)
        # A starting range above 0 is a discount for large amounts.
        if not name or term != "OnDemand" or currency != "USD" or float(start or 0):
            continue
        if per := UNITS.get(unit.lower()):
            yield Price(name, float(usd), per, day, address)


def as_toml(prices: Iterable[Price], region: str) -> str:
    """Rows in the form of prices.toml, to replace its own."""
    lines = [f'region = "{region}"']
    for price in sorted(prices, key=lambda one: one.name):
        head = "instances" if price.name.startswith("ml.") else "idle"
        lines += ["", f'[{head}."{price.name}"]']
        if head == "instances":
            lines.append(f"usd_per_hour = {price.usd:g}")
        else:
            lines += [f"usd = {price.usd:g}", f'per = "{price.per}"']
        lines += [f"price_date = {price.day}", f"# {price.source}"]
    return "\n".join(lines) + "\n"


def _name(offer: str, usage: str) -> str:
    """The row of prices.toml for a usage type; empty if the kit does not need it."""
    for pattern, name in WANTED[offer].items():
        if found := re.fullmatch(rf"(?:[A-Z]+\d*-)?{pattern}", usage):
            return found.expand(name)
    return ""


def _plain(column: str) -> str:
    return column.lower().replace(" ", "")


def _lines(address: str) -> Iterator[str]:
    with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS) as answer:
        yield from io.TextIOWrapper(answer, encoding="utf-8", newline="")
