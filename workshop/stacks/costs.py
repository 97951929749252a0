"""What the stacks cost by the hour while they stand. The prices are in workshop/prices.toml."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date

from workshop.stacks import templates
from workshop.stacks.errors import asking
from workshop.stacks.reading import NOT_THERE, Standing

NOTHING_STANDS = (NOT_THERE, "ROLLBACK_COMPLETE", "REVIEW_IN_PROGRESS")
STOPPED = ("Stopped", "Stopping", "Failed")


@dataclass(frozen=True)
class Hourly:
    """What a stack costs. usd: an hour. parts: of what, how many. oldest: price date, or None."""

    usd: float
    parts: dict[str, int]
    oldest: date | None


def hourly(session, standing: Standing) -> Hourly:
    """What a stack of a seat costs an hour on AWS, in us-east-1, used or not.

    Not counted: gigabytes, stored or moved. Raises StackError if SageMaker does not say whether
    the notebook instance runs, and PriceNotKnown for an instance type without a price.
    """
    parts = Counter()
    if standing.state not in NOTHING_STANDS:
        if standing.name == "network":
            parts = _network(standing.parameters)
        elif standing.name == "notebook":
            parts = _notebook(session, standing)
    from workshop.standing import price  # which needs workshop.sessions, which needs the stacks

    prices = {part: price(part) for part in parts}
    usd = sum(count * prices[part].usd for part, count in parts.items())
    oldest = min((one.price_date for one in prices.values()), default=None)
    return Hourly(usd, dict(parts), oldest)


def _network(parameters: dict[str, str]) -> Counter:
    parts = Counter()
    if parameters.get("InterfaceEndpoints") == "yes":
        kinds = [one.get("Properties", {}) for one in templates.resources("network").values()]
        parts["interface-endpoint"] = sum(
            one.get("VpcEndpointType") == "Interface" for one in kinds
        )
    if parameters.get("Nat") == "yes":
        parts["nat-gateway"] = parts["public-ipv4"] = 1
    return parts


def _notebook(session, standing: Standing) -> Counter:
    name = standing.outputs.get("NotebookName")
    if not name:  # not made yet, or gone
        return Counter()
    with asking(standing.stack):
        found = session.client("sagemaker").describe_notebook_instance(NotebookInstanceName=name)
    if found["NotebookInstanceStatus"] in STOPPED:
        return Counter()
    return Counter({f"notebook {found['InstanceType']}": 1})
