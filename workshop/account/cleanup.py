"""Find everything that a seat owns in an account, delete it, and look again.

    found = cleanup.find(session)       # looks, and changes nothing
    report = cleanup.clean(session)     # deletes; report.left is what a second look found
    cleanup.end_what_runs(session, began)   # only what is billed by the hour, and is new

Only what carries the two tags of the kit, `workshop` and `seat`, is ever deleted. A name proves
nothing: `workshop-a-b-storage` begins like the resources of seat `a`, and may be somebody else's.

Nothing is remembered between two runs: each looks for itself, so a second run finishes what a
first one left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from workshop.account import resources, seat_stacks, stacks
from workshop.account.prices import hourly_cost
from workshop.account.resources import (
    REFUSALS,
    RUNNING,
    TRAINING_LOGS,
    TRANSFORM_LOGS,
    Account,
    Listed,
    OwnedResource,
    gone_is_fine,
)

__all__ = ["ForeignResource", "Inventory", "OwnedResource", "Report", "clean", "find"]


WARM = "billed like a running job until its time is over"


@dataclass(frozen=True)
class Kind:
    """A kind of resources. All three functions may raise REFUSALS.

    list: those whose names begin like the seat's. delete: one, by its name, and wait until it is
    gone. cost: fields of OwnedResource; None for what costs nothing, or is priced by `list`.
    """

    name: str
    list: Callable[[Account], Iterator[Listed]]
    delete: Callable[[Account, str], None]
    cost: Callable[[Account, str], dict[str, Any]] | None = None


def _sagemaker(name: str, word: str, wanted: Callable[[dict], bool] = bool, **more) -> Kind:
    """A kind that SageMaker lists by name, with tags. word: as its API spells it."""
    own = {"delete": partial(resources.delete, word=word)} | more
    return Kind(name, partial(resources.listed, word=word, wanted=wanted), **own)


def _running(name: str, word: str, note: str) -> Kind:
    """Jobs that run. note: on what they cost; {} is the most that it can be."""
    return _sagemaker(
        name,
        word,
        lambda job: job[f"{word}Status"] in RUNNING,
        delete=partial(resources.stop, word=word),
        cost=partial(resources.job_cost, word=word, note=note),
    )


# In the order of deletion. What runs goes first: it costs most, and it writes. What proves who
# owns a resource goes after it: a job's record after its log, a stack after the objects in its
# bucket. So a run that was interrupted at any place can be finished by the next one.
KINDS = (
    _running("running training jobs", "TrainingJob", "at most {} until max_run ends it"),
    _sagemaker(
        "warm pools",
        "TrainingJob",
        resources.is_warm,
        delete=resources.end_warm_pool,
        cost=partial(resources.job_cost, word="TrainingJob", note=WARM),
    ),
    # A transform job has no limit of its own: nobody knows what it will cost.
    _running("running transform jobs", "TransformJob", "costs until it ends"),
    _sagemaker(
        "endpoints",
        "Endpoint",
        delete=resources.delete_endpoint,
        cost=resources.endpoint_cost,
    ),
    _sagemaker("endpoint configurations", "EndpointConfig"),
    _sagemaker("models", "Model"),
    Kind(
        "image repositories",
        resources.repositories,
        resources.delete_repository,
        resources.repository_cost,
    ),
    Kind("log groups of endpoints", resources.endpoint_logs, resources.delete_log_group),
    Kind(
        "log streams of training jobs",
        partial(resources.job_logs, word="TrainingJob", group=TRAINING_LOGS),
        partial(resources.delete_streams, group=TRAINING_LOGS),
    ),
    # SageMaker has no call that deletes a transform job. Its record stays, and costs nothing.
    Kind(
        "log streams of transform jobs",
        partial(resources.job_logs, word="TransformJob", group=TRANSFORM_LOGS),
        partial(resources.delete_streams, group=TRANSFORM_LOGS),
    ),
    _sagemaker(
        "records of training jobs",
        "TrainingJob",
        lambda job: job["TrainingJobStatus"] not in RUNNING,
        delete=resources.delete_record,
    ),
    Kind("objects", seat_stacks.objects, seat_stacks.delete_objects),
    Kind("stacks", seat_stacks.listed, seat_stacks.delete, seat_stacks.cost),
    Kind("buckets", seat_stacks.buckets, seat_stacks.delete_bucket),
    Kind(
        "log streams of the notebook instance",
        seat_stacks.notebook_logs,
        partial(resources.delete_streams, group=seat_stacks.NOTEBOOK_LOGS),
    ),
)
WHAT_RUNS = KINDS[:4]  # all but stacks that is billed by the hour


@dataclass(frozen=True)
class ForeignResource:
    """Something with a name like the seat's that is not proved to be the seat's."""

    kind: str
    name: str
    why: str = "not tagged as this seat's"


@dataclass
class Inventory:
    """What a look found.

    owned: the seat's. foreign: with a name like the seat's, and not proved to be the seat's.
    unseen: kind -> why it could not be looked at.
    """

    owned: list[OwnedResource] = field(default_factory=list)
    foreign: list[ForeignResource] = field(default_factory=list)
    unseen: dict[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many resources of the seat there are."""
        return sum(resource.count for resource in self.owned)

    @property
    def usd_per_month(self) -> float:
        """What they cost a month, as far as prices are known."""
        return sum(resource.usd_per_month or 0.0 for resource in self.owned)

    def of(self, kind: str) -> list[OwnedResource]:
        """The resources of one kind."""
        return [resource for resource in self.owned if resource.kind == kind]

    @property
    def by_the_hour(self) -> list[OwnedResource]:
        """What is billed by the hour while it is there, used or not."""
        return [resource for resource in self.owned if resource.usd_per_hour != 0]

    @property
    def usd_per_hour(self) -> float:
        """What that costs an hour, as far as prices are known."""
        return sum(resource.usd_per_hour or 0.0 for resource in self.by_the_hour)

    def table(self):
        """A pandas table: a row for each kind, with how many, bytes, and USD a month."""
        import pandas as pd

        rows = []
        for kind in dict.fromkeys(resource.kind for resource in self.owned):
            count, size, usd = totals(self.of(kind))
            shown = "not told" if size is None else f"{size:,}"
            rows.append((kind, count, shown, "not known" if usd is None else f"{usd:.2f}"))
        columns = ["kind", "how many", "bytes", "USD a month"]
        return pd.DataFrame(rows, columns=columns).set_index("kind")


@dataclass
class Report:
    """What a run did. refused: (kind, name) -> why. left: what a look afterwards found."""

    done: list[OwnedResource] = field(default_factory=list)
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
        lines += [f"Left: {kind}: nobody knows: {why}" for kind, why in self.left.unseen.items()]
        lines += ["Left: nothing."] if self.nothing_left else []
        return lines + [
            f"Not touched: {foreign.kind}: {foreign.name}: {foreign.why}"
            for foreign in self.left.foreign
        ]


def find(session) -> Inventory:
    """All that the seat has, in the order in which it would be deleted. Changes nothing."""
    account, found = Account(session), Inventory()
    for kind in KINDS:
        try:
            owned, foreign = look(account, kind)
        except REFUSALS as error:
            found.unseen[kind.name] = why(error)
            continue
        found.owned += owned
        found.foreign += foreign
    return found


def clean(session, say: Callable[[str], None] = print, report: Report | None = None) -> Report:
    """Delete everything that the seat owns, and look again. Running it again changes nothing more.

    say: takes a line of progress for each resource. report: grows while this runs; whoever may be
    interrupted brings one.
    """
    report = report or Report()
    _delete_all(Account(session), KINDS, say, report)
    report.left = find(session)
    return report


def end_what_runs(session, since: datetime, say: Callable[[str], None] = print) -> None:
    """End the jobs, transforms, warm pools and endpoints of a seat that were made after `since`."""
    _delete_all(Account(session, since), WHAT_RUNS, say, Report())


def still_billed(session) -> list[str]:
    """What a seat has that is billed by the hour, a line for each with its price; then the remedy.

    Asks for no more than a seat's own role may look at.
    """
    account, lines = Account(session), []
    for kind in WHAT_RUNS:
        try:
            lines += [_billed(kind.name, one) for one in look(account, kind)[0]]
        except REFUSALS as error:
            lines.append(f"STILL BILLED? {kind.name}: could not be looked at: {why(error)}")
    for stack in stacks.status(session, seat_stacks.MAY_COST):
        usd = hourly_cost(session, stack).usd
        lines += [f"STILL BILLED: {stack.stack}: {usd:.3f} USD an hour"] if usd else []
    if lines:
        where = f"--seat {session.seat} --target {session.target}"
        lines.append(f"To remove all of it: workshop clean {where}")
    return lines


def _billed(kind: str, resource: OwnedResource) -> str:
    usd = resource.usd_per_hour
    price = "price not known here" if usd is None else f"{usd:.3f} USD an hour"
    return f"STILL BILLED: {kind}: {resource.name}: {price}"


def look(account: Account, kind: Kind) -> tuple[list[OwnedResource], list[ForeignResource]]:
    """One kind's resources: the seat's, and those that nobody's tags claim. Raises REFUSALS."""
    owned, foreign, seat = [], [], account.session.seat
    for name, owner, details in kind.list(account):
        if isinstance(owner, str):
            foreign.append(ForeignResource(kind.name, name, owner))
        elif account.owns(owner):
            resource = OwnedResource(kind.name, name, **details)
            owned.append(_priced(account, kind, resource) if kind.cost else resource)
        elif not account.owns(owner | {"seat": seat}) or "seat" not in owner:
            foreign.append(ForeignResource(kind.name, name))
        # The rest has another seat's tags: it is somebody's, and that is known.
    return owned, foreign


def totals(resources: list[OwnedResource]) -> tuple[int, int | None, float | None]:
    """(how many, bytes, USD a month) together; None where one of them is not known."""
    sizes = [resource.size for resource in resources]
    costs = [resource.usd_per_month for resource in resources]
    return (
        sum(resource.count for resource in resources),
        None if None in sizes else sum(sizes),
        None if None in costs else sum(costs),
    )


def why(error: Exception) -> str:
    """An error in one line, with the call that was refused."""
    if response := getattr(error, "response", None):
        told = response["Error"]
        return f"{error.operation_name}: {told.get('Code')}: {told.get('Message')}".strip()
    return str(error) or type(error).__name__


def _priced(account: Account, kind: Kind, resource: OwnedResource) -> OwnedResource:
    """The resource with its cost. Deleting works without permission to read prices."""
    try:
        return replace(resource, **kind.cost(account, resource.name))
    except REFUSALS as error:
        note = f"its cost cannot be asked: {why(error)}"
        hourly = 0.0 if kind.name == "image repositories" else None
        return replace(resource, usd_per_month=None, usd_per_hour=hourly, note=note)


def _delete_all(
    account: Account, kinds: Iterable[Kind], say: Callable[[str], None], report: Report
) -> None:
    for kind in kinds:
        try:
            # Looked for only now: what was stopped before may have left more.
            owned, _ = look(account, kind)
        except REFUSALS as error:
            say(f"{kind.name}: could not be looked at: {why(error)}")
            continue
        for resource in owned:
            say(_delete(account, kind, resource, report))


def _delete(account: Account, kind: Kind, resource: OwnedResource, report: Report) -> str:
    """Delete one resource, record the outcome, and report it in a line."""
    what = f"{kind.name}: {resource.name}"
    what += f" ({resource.count})" if resource.count > 1 else ""
    try:
        with gone_is_fine():
            kind.delete(account, resource.name)
    except REFUSALS as error:
        report.refused[kind.name, resource.name] = why(error)
        return f"{what}: REFUSED: {why(error)}"
    report.done.append(resource)
    return f"{what}: {'stopped' if 'running' in kind.name else 'deleted'}"
