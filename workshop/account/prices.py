"""What a training job costs on AWS, said before it runs. The prices are in prices.toml, dated.

    workshop.cost("ml.c5.xlarge", instance_count=2, seconds=300)

Counted are the instances, which are nearly all of it. Not counted: S3, logs, the instances'
volumes, tax. On this machine (target="local") a job costs nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from workshop.sessions import MAX_RUN_SECONDS

PRICES = Path(__file__).with_name("prices.toml")
GRACE_SECONDS = 120  # SageMaker gives a job that reached max_run this long to save its model
PRICING_PAGE = "https://aws.amazon.com/sagemaker/pricing/"


class PriceNotKnown(ValueError):
    """There is no price for an instance type; the message says why and where to look."""


@dataclass(frozen=True, repr=False)
class Cost:
    """What a job costs. seconds: billable seconds of one instance. usd_per_hour: of one instance.

    max_run: the limit in seconds after which SageMaker ends the job.
    """

    instance_type: str
    instance_count: int
    seconds: float
    max_run: int
    usd_per_hour: float
    region: str
    price_date: date
    source: str

    @property
    def usd(self) -> float:
        """USD for the seconds given: all instances, each for as long as the job."""
        return self._usd_for(self.seconds)

    @property
    def most_usd(self) -> float:
        """USD at most: the job runs into max_run and uses the time to save, too."""
        return self._usd_for(self.max_run + GRACE_SECONDS)

    def _usd_for(self, seconds: float) -> float:
        return self.instance_count * seconds / 3600 * self.usd_per_hour

    def __str__(self) -> str:
        return (
            f"{self.instance_count} x {self.instance_type} for {self.seconds:g} s: "
            f"{self.usd:.4f} USD. At most {self.most_usd:.2f} USD, since max_run is "
            f"{self.max_run} s.\n{self.usd_per_hour:g} USD per instance and hour, {self.region}, "
            f"price list of {self.price_date}: {self.source}"
        )

    __repr__ = __str__


def cost(
    instance_type: str, instance_count: int, seconds: float, max_run: int = MAX_RUN_SECONDS
) -> Cost:
    """What a job of `instance_count` instances that is billed for `seconds` costs on AWS.

    Raises:
        PriceNotKnown: the table has no price for this type.
        ValueError: no instance, or less than no time.
    """
    if instance_count < 1 or seconds < 0:
        raise ValueError(
            f"A job has at least 1 instance and 0 seconds, not {instance_count} and {seconds}."
        )
    found = _instance(instance_type)
    if "usd_per_hour" not in found:
        raise PriceNotKnown(
            f"The price of {instance_type} is not known here: {found['unknown']}. Look it up at "
            f"{PRICING_PAGE} before you use it, and add it to {PRICES.name}, with the date."
        )
    return Cost(
        instance_type=instance_type,
        instance_count=instance_count,
        seconds=seconds,
        max_run=max_run,
        usd_per_hour=found["usd_per_hour"],
        region=price_table()["region"],
        price_date=found["price_date"],
        source=price_table()["sources"][found["source"]]["address"],
    )


def cost_table(configurations: Iterable[Mapping[str, Any]], max_run: int = MAX_RUN_SECONDS):
    """A pandas table of what configurations would cost: a row for each, before any has run.

    configurations: each with instance_type, instance_count and, if there is an estimate,
        seconds. Other keys become columns in front.

    A type without a price has no numbers, and "not known" with the reason in the last column.
    """
    import pandas as pd

    return pd.DataFrame([_row(dict(one), max_run) for one in configurations])


def _row(configuration: dict[str, Any], max_run: int) -> dict[str, Any]:
    missing = {"instance_type", "instance_count"} - set(configuration)
    if missing:
        raise ValueError(f"{configuration} lacks {', '.join(sorted(missing))}.")
    seconds = configuration.get("seconds", float("nan"))
    row = {**configuration, "seconds": seconds}
    kind, count = row["instance_type"], row["instance_count"]
    numbers = dict.fromkeys(("USD per hour", "USD", "USD at most"), float("nan"))
    try:
        found = cost(kind, count, seconds, max_run)
    except PriceNotKnown:
        return {**row, **numbers, "price of": f"not known: {_instance(kind)['unknown']}"}
    values = (count * found.usd_per_hour, found.usd, found.most_usd)
    numbers = dict(zip(numbers, values, strict=True))
    return {**row, **numbers, "price of": str(found.price_date)}


@cache
def price_table() -> dict[str, Any]:
    """prices.toml as it is: region, sources, instances."""
    return tomllib.loads(PRICES.read_text(encoding="utf-8"))


def _instance(instance_type: str) -> dict[str, Any]:
    known = price_table()["instances"]
    if instance_type not in known:
        hint = f' Did you mean "ml.{instance_type}"?' if f"ml.{instance_type}" in known else ""
        raise PriceNotKnown(
            f"{PRICES.name} has no row for {instance_type!r}.{hint} It has: {', '.join(known)}. "
            f"Prices of others: {PRICING_PAGE}"
        )
    return known[instance_type]
