"""Find everything that a seat owns in an account, delete it, and look again.

    inventory = cleanup.find(session)       # looks, and changes nothing
    report = cleanup.clean(session)         # deletes; report.left is what a second look found
    cleanup.end_what_runs(session, began)   # only what is billed by the hour, and is new

Only what carries the two tags of the kit, `workshop` and `seat`, is ever deleted. A name proves
nothing: `workshop-a-b-storage` begins like the resources of seat `a`, and may be somebody else's.

Nothing is remembered between two runs: each looks for itself, so a second run finishes what a
first one left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from botocore.exceptions import ClientError

from workshop.account.resources import (
    REFUSALS,
    TYPES,
    WHAT_RUNS,
    Account,
    Resource,
    ResourceType,
    gone_is_fine,
    total,
)


@dataclass
class Inventory:
    """The result of a look.

    owned: the seat's. foreign: with a name like the seat's, and not proved to be the seat's; their
    notes say why. unseen: kind -> why it could not be looked at.
    """

    owned: list[Resource] = field(default_factory=list)
    foreign: list[Resource] = field(default_factory=list)
    unseen: dict[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many resources of the seat there are."""
        return sum(resource.count for resource in self.owned)

    @property
    def usd_per_month(self) -> float:
        """What they cost a month, as far as prices are known."""
        return sum(resource.usd_per_month or 0.0 for resource in self.owned)

    @property
    def kinds(self) -> list[str]:
        """The kinds of the seat's resources, in the order of deletion."""
        return list(dict.fromkeys(resource.kind for resource in self.owned))

    def by_kind(self, kind: str) -> list[Resource]:
        """The seat's resources of one kind."""
        return [resource for resource in self.owned if resource.kind == kind]

    def table(self):
        """A pandas table: a row for each kind, with how many, bytes, and USD a month."""
        import pandas as pd

        rows = []
        for kind in self.kinds:
            resources = self.by_kind(kind)
            count = sum(resource.count for resource in resources)
            size = total([resource.size for resource in resources])
            usd = total([resource.usd_per_month for resource in resources])
            shown = "not told" if size is None else f"{size:,}"
            rows.append((kind, count, shown, "not known" if usd is None else f"{usd:.2f}"))
        columns = ["kind", "how many", "bytes", "USD a month"]
        return pd.DataFrame(rows, columns=columns).set_index("kind")


@dataclass
class Report:
    """What a run did. refused: (kind, name) -> reason. left: the result of a look afterwards."""

    done: list[Resource] = field(default_factory=list)
    refused: dict[tuple[str, str], str] = field(default_factory=dict)
    left: Inventory = field(default_factory=Inventory)

    @property
    def nothing_left(self) -> bool:
        """Whether the last look saw everything, and nothing of the seat."""
        return not self.left.owned and not self.left.unseen

    def lines(self) -> list[str]:
        """What is left, and why, a line for each; "Left: nothing." if nothing is."""
        lines = [
            f"Left: {resource.kind}: {resource.name}: "
            + self.refused.get((resource.kind, resource.name), "it is still there; run this again")
            for resource in self.left.owned
        ]
        lines += [f"Left: {kind}: nobody knows: {text}" for kind, text in self.left.unseen.items()]
        lines += ["Left: nothing."] if self.nothing_left else []
        return lines + [
            f"Not touched: {resource.kind}: {resource.name}: {resource.note}"
            for resource in self.left.foreign
        ]


def find(session) -> Inventory:
    """All that the seat has, in the order in which it would be deleted. Changes nothing."""
    account, inventory = Account(session), Inventory()
    for each in TYPES:
        try:
            owned, foreign = look(account, each)
        except REFUSALS as error:
            inventory.unseen[each.kind] = refusal_reason(error)
            continue
        inventory.owned += owned
        inventory.foreign += foreign
    return inventory


def clean(session, log: Callable[[str], None] = print, report: Report | None = None) -> Report:
    """Delete everything that the seat owns, and look again. Running it again changes nothing more.

    log: takes a line of progress for each resource. report: grows while this runs; give
    one where an interrupt must not lose it.
    """
    report = report or Report()
    _delete_all(Account(session), TYPES, log, report)
    report.left = find(session)
    return report


def end_what_runs(session, since: datetime, log: Callable[[str], None] = print) -> None:
    """End the jobs, transforms and endpoints of a seat that were made after `since`."""
    _delete_all(Account(session, since), WHAT_RUNS, log, Report())


def look(account: Account, each: ResourceType) -> tuple[list[Resource], list[Resource]]:
    """One type's resources: the seat's, and those that nobody's tags claim. Raises REFUSALS."""
    owned, foreign = [], []
    for resource in each.list(account):
        tags = resource.tags
        if tags is None:
            foreign.append(resource)
        elif account.owns(tags):
            owned.append(_priced(account, each, resource))
        elif "seat" not in tags or not account.owns({**tags, "seat": account.session.seat}):
            foreign.append(replace(resource, note="not tagged as this seat's"))
        # The rest has another seat's tags: it is somebody's, and that is known.
    return owned, foreign


def refusal_reason(error: Exception) -> str:
    """An error in one line, with the call that was refused."""
    if isinstance(error, ClientError):
        row = error.response["Error"]
        return f"{error.operation_name}: {row.get('Code')}: {row.get('Message')}".strip()
    return str(error) or type(error).__name__


def _priced(account: Account, each: ResourceType, resource: Resource) -> Resource:
    """The resource with its cost. Deleting works without permission to read prices."""
    try:
        return each.price(account, resource)
    except REFUSALS as error:
        note = f"its cost cannot be asked: {refusal_reason(error)}"
        return replace(resource, usd_per_month=None, note=note)


def _delete_all(
    account: Account, types: Iterable[ResourceType], log: Callable[[str], None], report: Report
) -> None:
    for each in types:
        try:
            # Looked for only now: what was stopped before may have left others.
            owned, _ = look(account, each)
        except REFUSALS as error:
            log(f"{each.kind}: could not be looked at: {refusal_reason(error)}")
            continue
        for resource in owned:
            log(_delete(account, each, resource, report))


def _delete(account: Account, each: ResourceType, resource: Resource, report: Report) -> str:
    """Delete one resource, record the outcome, and report it in a line."""
    line = f"{each.kind}: {resource.name}"
    line += f" ({resource.count})" if resource.count > 1 else ""
    try:
        with gone_is_fine():
            each.delete(account, resource.name)
    except REFUSALS as error:
        reason = report.refused[each.kind, resource.name] = refusal_reason(error)
        return f"{line}: REFUSED: {reason}"
    report.done.append(resource)
    return f"{line}: {each.verb}"
