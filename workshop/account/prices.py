"""What a job costs, before it runs; what idle or running things cost. prices.toml has the dates.

    workshop.cost("ml.c5.xlarge", instance_count=2, seconds=300)
    prices.idle_price("nat-gateway").per_month(2)        # USD for two of them

Of a job the instances are counted, which are nearly all of it. Not counted: S3, logs, the
instances' volumes, tax. On this machine (target="local") nothing costs anything. What prices.toml
does not have has no price here, and nobody guesses.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from workshop.account.stacks import NOT_THERE, StackStatus, explained, template_resources

PRICES = Path(__file__).with_name("prices.toml")
MAX_RUN_SECONDS = 30 * 60  # what a job may cost at most: far above any lesson's job
GRACE_SECONDS = 120  # SageMaker gives a job that reached max_run this long to save its model
PRICING_PAGE = "https://aws.amazon.com/sagemaker/pricing/"
HOURS_PER_MONTH = 730  # 365 days of 24 hours, in twelve parts
GB = 10**9  # bytes; AWS counts 2**30 for some: 7 % more, far below what is known here
WITHOUT_RESOURCES = (NOT_THERE, "ROLLBACK_COMPLETE", "REVIEW_IN_PROGRESS")
STOPPED = ("Stopped", "Stopping", "Failed")


class PriceNotKnown(ValueError):
    """There is no price for it; the message says why and where to look."""


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
        most = up_to_cents(self.most_usd)
        return (
            f"{self.instance_count} x {self.instance_type} for {self.seconds:g} s: "
            f"{self.usd:.4f} USD. At most {most:.2f} USD: max_run is {self.max_run} s, "
            f"and {GRACE_SECONDS} s more to save.\n"
            f"{self.usd_per_hour:g} USD per instance and hour, {self.region}, "
            f"price list of {self.price_date}: {self.source}"
        )

    __repr__ = __str__


def up_to_cents(usd: float) -> float:
    """USD, rounded up to whole cents: what is named as a limit must not be below it."""
    return math.ceil(round(100 * usd, 6)) / 100


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
    row = _instance(instance_type)
    if "usd_per_hour" not in row:
        raise PriceNotKnown(
            f"The price of {instance_type} is not known here: {row['unknown']}. Look it up at "
            f"{PRICING_PAGE} before you use it, and add it to {PRICES.name}, with the date."
        )
    return Cost(
        instance_type=instance_type,
        instance_count=instance_count,
        seconds=seconds,
        max_run=max_run,
        usd_per_hour=row["usd_per_hour"],
        region=price_table()["region"],
        price_date=row["price_date"],
        source=price_table()["sources"][row["source"]]["address"],
    )


def cost_table(configurations: Iterable[Mapping[str, Any]], max_run: int = MAX_RUN_SECONDS):
    """A pandas table of what configurations would cost: a row for each, before any has run.

    configurations: each with instance_type, instance_count and, if there is an estimate,
        seconds. Other keys become columns in front.

    A type whose row has no price has no numbers, and "not known" with the reason in the last
    column; a type without a row raises PriceNotKnown.
    """
    import pandas as pd

    return pd.DataFrame([_row(dict(each), max_run) for each in configurations])


def _row(configuration: dict[str, Any], max_run: int) -> dict[str, Any]:
    seconds = configuration.get("seconds", float("nan"))
    row = {**configuration, "seconds": seconds}
    kind, count = row["instance_type"], row["instance_count"]
    numbers = dict.fromkeys(("USD per hour", "USD", "USD at most"), float("nan"))
    try:
        job_cost = cost(kind, count, seconds, max_run)
    except PriceNotKnown:
        return {**row, **numbers, "price as of": f"not known: {_instance(kind)['unknown']}"}
    values = (count * job_cost.usd_per_hour, job_cost.usd, job_cost.most_usd)
    numbers = dict(zip(numbers, values, strict=True))
    return {**row, **numbers, "price as of": str(job_cost.price_date)}


@dataclass(frozen=True)
class IdlePrice:
    """What a thing costs while it is there. usd: for one `per`, which is "hour" or "GB-month"."""

    name: str
    description: str
    usd: float
    per: str
    price_date: date
    source: str

    @property
    def example(self) -> float:
        """An amount for tables: one that runs, or 10 GB that are stored."""
        return 1 if self.per == "hour" else 10 * GB

    def per_month(self, amount: float = 1) -> float:
        """USD for a month. amount: how many of them; of what is stored, bytes."""
        if self.per == "hour":
            return amount * self.usd * HOURS_PER_MONTH
        return amount / GB * self.usd


def idle_price(name: str) -> IdlePrice:
    """The price of a thing while it is there, by its name in prices.toml ("nat-gateway", "s3").

    Raises PriceNotKnown.
    """
    known = price_table()["idle"]
    if name not in known:
        raise PriceNotKnown(
            f"{PRICES.name} has no row [idle] for {name!r}. It has: {', '.join(known)}."
        )
    row = dict(known[name])
    source = price_table()["sources"][row.pop("source")]["address"]
    return IdlePrice(name=name, source=source, **row)


def usd_per_month(name: str, amount: float = 1) -> float | None:
    """USD for a month of it, or None where the price is not known. amount: as per_month's."""
    try:
        return idle_price(name).per_month(amount)
    except PriceNotKnown:
        return None


def idle_table():
    """A pandas table of everything that costs money while it exists, the most expensive first.

    Its index is the names of prices.toml. Of what is stored, USD a month are for 10 GB.
    """
    import pandas as pd

    rows = []
    for name in price_table()["idle"]:
        price = idle_price(name)
        monthly = price.per_month(price.example)
        thing = price.description if price.per == "hour" else f"10 GB of {price.description}"
        usd = f"{price.usd:g} per {price.per}"
        rows.append((name, thing, usd, round(monthly, 2), str(price.price_date)))
    columns = ["name", "what is there", "USD", "USD a month", "price as of"]
    frame = pd.DataFrame(rows, columns=columns).set_index("name")
    return frame.sort_values("USD a month", ascending=False)


@dataclass(frozen=True)
class HourlyCost:
    """What a stack costs. usd: an hour. parts: of what, how many."""

    usd: float
    parts: dict[str, int]


def hourly_cost(session, stack: StackStatus) -> HourlyCost:
    """What a stack of a seat costs an hour on AWS, in us-east-1, used or not.

    Not counted: gigabytes, stored or moved. Raises StackError if SageMaker does not say whether
    the notebook instance runs, and PriceNotKnown for an instance type without a price.
    """
    parts: Counter[str] = Counter()
    if stack.state not in WITHOUT_RESOURCES:
        if stack.name == "network":
            parts = _network_parts(stack.parameters)
        elif stack.name == "notebook":
            parts = _notebook_parts(session, stack)
    usd = sum(count * idle_price(part).usd for part, count in parts.items())
    return HourlyCost(usd, dict(parts))


def _network_parts(parameters: Mapping[str, str]) -> Counter:
    parts: Counter[str] = Counter()
    if parameters.get("InterfaceEndpoints") == "yes":
        resources = template_resources("network").values()
        kinds = [resource.get("Properties", {}).get("VpcEndpointType") for resource in resources]
        parts["interface-endpoint"] = kinds.count("Interface")
    if parameters.get("Nat") == "yes":
        parts["nat-gateway"] = parts["public-ipv4"] = 1
    return parts


def _notebook_parts(session, stack: StackStatus) -> Counter:
    name = stack.outputs.get("NotebookName")
    if not name:  # not made yet, or gone
        return Counter()
    with explained(stack.stack):
        sagemaker = session.client("sagemaker")
        instance = sagemaker.describe_notebook_instance(NotebookInstanceName=name)
    if instance["NotebookInstanceStatus"] in STOPPED:
        return Counter()
    return Counter({f"notebook {instance['InstanceType']}": 1})


@cache
def price_table() -> dict[str, Any]:
    """prices.toml as it is: region, sources, instances, idle."""
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
