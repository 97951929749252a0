"""A class: the seats of N learners in one account and one VPC.

    seats = classroom.up(session, ["s01", "s02"], {"Email": "me@example.org"})
    classroom.costs(session), classroom.clean(session)

A seat of a class is like any other: a bucket, two roles, and, in place of a network of its own,
two subnets and a security group in the class's VPC. That VPC, the budget and the policies of
instructor and learners are the stack workshop-class-shared, which also has the list of the seats.

A stack for each seat, and no single one for all: CloudFormation takes 51,200 bytes of a template
and 500 resources of a stack, which 20 seats exceed. A bucket for each, and no prefix of a common
one: the lessons' addresses stay as they are, and a bucket is a border that no list of objects
crosses.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from workshop.account import cleanup, stacks
from workshop.account.prices import PriceNotKnown, cost
from workshop.account.resources import REFUSALS
from workshop.account.stacks import (
    NOT_THERE,
    SEAT,
    SHARED,
    StackError,
    StackStatus,
    template_parameters,
)

CLASS = "class"  # the class's name in the place of a seat's; cloudformation/subnets.yaml has it too
PER_SEAT = ("storage", "roles", "subnets")
MAX_SEATS = 100  # AWS's default quota is 200 subnets a VPC, and a seat has two
AT_ONCE = 5  # seats at a time: CloudFormation takes a minute a stack, and few calls a second
USD_A_SEAT = 10  # of the budget: two days with a notebook instance, and half as much again
OWN_PARAMETERS = ("Seat", "Seats", "Number")  # given here, by nobody else
TAGS = ("workshop", "seat")


@dataclass(frozen=True)
class SeatSession:
    """What the account's functions need of a session, for one seat of many."""

    target: str
    seat: str
    region: str
    client: Callable[[str], Any]

    @property
    def job_prefix(self) -> str:
        """How the names of this seat's jobs begin."""
        return f"workshop-{self.seat}-"


@dataclass
class SeatCost:
    """What a seat costs. jobs: how many it has had. usd: what they were billed.

    usd_per_hour: of what is there now. unknown: entries whose price is not known.
    """

    seat: str
    jobs: int = 0
    usd: float = 0.0
    usd_per_hour: float = 0.0
    by_the_hour: list[str] = field(default_factory=list)
    unknown: int = 0


def seat_names(text: str) -> list[str]:
    """Names of seats. text: a number, for s01, s02...; or names with commas between them.

    Raises ValueError with what was expected.
    """
    numbered = [f"s{n:02d}" for n in range(1, int(text) + 1)] if text.isdecimal() else []
    names = numbered or [name.strip() for name in text.split(",")]
    if text.strip() == "0" or len(names) > MAX_SEATS:
        raise ValueError(f"{text!r} is {len(numbered)} seats; a class has 1 to {MAX_SEATS}.")
    for name in names:
        if not SEAT.fullmatch(name) or name == CLASS or names.count(name) > 1:
            raise ValueError(
                f"{name!r} in {text!r}: each seat is 1 to 16 small letters or digits, named once, "
                f"and not {CLASS!r}. Give a number, such as 20, or names: ann,bob,chi."
            )
    return names


def members(session) -> list[str]:
    """The seats of the class; none where there is no class. Raises StackError."""
    (shared,) = stacks.status(_sessions(session, [CLASS])[0], (SHARED,))
    return [name for name in shared.outputs.get("Seats", "").split(",") if name]


def up(
    session,
    names: Iterable[str],
    parameters: Mapping[str, str] | None = None,
    also: Iterable[str] = (),
    log: Callable[[str], None] = print,
) -> list[str]:
    """Make the class, and the seats that it lacks; finish what was interrupted.

    Args:
        session: what workshop.session returned; its own seat does not matter.
        names: the seats. Those that the class has already stay in it, also if not named.
        parameters: for the templates of all seats, and for that of what they share.
        also: other stacks for each seat: "notebook".
        log: takes a line for each stack.

    Returns all seats of the class. Raises StackError: before anything is made, for a parameter or
    a stack that a class does not have; at the end, with the seats that could not be made.
    """
    kinds, given = [*PER_SEAT, *also], dict(parameters or {})
    check(kinds, given)
    have = members(session)
    everyone = [*have, *(name for name in names if name not in have)]
    if len(everyone) > MAX_SEATS:
        raise StackError(f"The class would have {len(everyone)} seats; {MAX_SEATS} is the most.")
    whole, *seats = _sessions(session, [CLASS, *everyone])
    if have:  # who joins later gets the limits of those who are there
        given = _given_to(seats[0], kinds) | given
    shared = {"Seats": ",".join(everyone)} | _budget(whole, len(have), len(everyone))
    stacks.deploy(whole, (SHARED,), log, shared | _declared((SHARED,), given))

    def make(seat: SeatSession) -> None:
        number = {"Number": str(everyone.index(seat.seat) + 1)}
        stacks.deploy(seat, kinds, log, _declared(kinds, given) | number)

    _raise_for(_each(make, seats)[1])
    return everyone


def check(kinds: Iterable[str], parameters: Mapping[str, str]) -> None:
    """Raise StackError unless a class has these stacks for a seat, and these parameters."""
    if wrong := set(kinds) - {*PER_SEAT, "notebook"}:
        raise StackError(
            f"The seats of a class do not have {', '.join(sorted(wrong))}: they share a network. "
            f"Each has {', '.join(PER_SEAT)}, and notebook if you name it."
        )
    if wrong := set(parameters) & set(OWN_PARAMETERS):
        raise StackError(f"{', '.join(sorted(wrong))} cannot be given: --seats says it.")
    stacks.check_parameters((SHARED, *kinds), parameters)


def status(session) -> dict[str, list[StackStatus]]:
    """Stacks of the class, under its own name, and of each seat. Empty without a class.

    Raises StackError.
    """
    seats = members(session)

    def look(seat: SeatSession) -> list[StackStatus]:
        rows = stacks.status(seat, (SHARED,) if seat.seat == CLASS else (*PER_SEAT, "notebook"))
        return [row for row in rows if row.name != "notebook" or row.state != NOT_THERE]

    rows, failed = _each(look, _sessions(session, [CLASS, *seats]))
    _raise_for(failed)
    return rows if seats or rows[CLASS][0].state != NOT_THERE else {}


def policies(session) -> dict[str, str]:
    """Outputs of what the seats share, such as the ARNs of the instructor's and learners' policies.

    Raises StackError.
    """
    return stacks.outputs(_sessions(session, [CLASS])[0], (SHARED,))


def costs(session) -> list[SeatCost]:
    """What each seat has cost and costs now, from what the account holds and our price table.

    Counted: billed seconds of training jobs that have a record, and what is there now by the hour.
    Not counted: hours of endpoints, transforms and notebook instances that are gone, gigabytes,
    tax. Raises StackError.
    """
    rows, failed = _each(_cost, _sessions(session, members(session)))
    _raise_for(failed)
    return list(rows.values())


def billed_usd(session, since: date, until: date) -> dict[str, float]:
    """Seat -> USD that AWS has billed, by Cost Explorer; 0.01 USD for each such question.

    Empty until the tags are activated. since, until: the first day, and the one after the last.
    Raises ClientError where it may not be asked, BotoCoreError.
    """
    client = session.client("ce")
    billed: dict[str, float] = {}
    request: dict[str, Any] | None = {
        "TimePeriod": {"Start": since.isoformat(), "End": until.isoformat()},
        "Granularity": "MONTHLY",
        "Metrics": ["UnblendedCost"],
        "Filter": {"Tags": {"Key": "workshop", "Values": ["data-parallel"]}},
        "GroupBy": [{"Type": "TAG", "Key": "seat"}],
    }
    while request:
        answer = client.get_cost_and_usage(**request)
        for group in (group for month in answer["ResultsByTime"] for group in month["Groups"]):
            seat = group["Keys"][0].removeprefix("seat$")
            usd = float(group["Metrics"]["UnblendedCost"]["Amount"])
            billed[seat] = billed.get(seat, 0.0) + usd
        token = answer.get("NextPageToken")
        request = request | {"NextPageToken": token} if token else None
    return billed


def activate_tags(session) -> str:
    """Make the kit's tags cost allocation tags. Returns the outcome as a sentence."""
    active = [{"TagKey": key, "Status": "Active"} for key in TAGS]
    try:
        answer = session.client("ce").update_cost_allocation_tags_status(
            CostAllocationTagsStatus=active
        )
    except (ClientError, BotoCoreError) as error:
        return f"The tags could not be activated: {cleanup.refusal_reason(error)}. {BY_HAND}"
    if errors := answer.get("Errors"):
        reasons = "; ".join(f"{row['TagKey']}: {row['Message']}" for row in errors)
        return f"AWS does not know them yet ({reasons}): it takes up to a day. Try again tomorrow."
    return "The tags workshop and seat are active. Cost Explorer shows them from tomorrow on."


BY_HAND = (
    "In the account that pays: Billing and Cost Management, Cost allocation tags, activate "
    "workshop and seat."
)


def clean(
    session, log: Callable[[str], None] = print
) -> tuple[dict[str, cleanup.Report], dict[str, str]]:
    """Delete everything that the seats own, look again, and, if nothing is left of any, the class.

    Returns the reports by seat, the class's under its own name, and by seat why one could not be
    cleaned at all. Running it again finishes the work: what they share has the list and goes last.
    """
    names = members(session)

    def clean_seat(seat: SeatSession) -> cleanup.Report:
        return cleanup.clean(seat, lambda line: log(f"{seat.seat}: {line}"))

    reports, failed = _each(clean_seat, _sessions(session, names))
    if not failed and all(report.nothing_left for report in reports.values()):
        reports[CLASS] = clean_seat(_sessions(session, [CLASS])[0])
    return reports, {name: cleanup.refusal_reason(error) for name, error in failed.items()}


def _budget(whole: SeatSession, before: int, seats: int) -> dict[str, str]:
    """The budget for so many seats; nothing if somebody has chosen another for those before."""
    (now,) = stacks.status(whole, (SHARED,))
    usual = str(USD_A_SEAT * before)
    chosen = now.parameters.get("BudgetUsd", usual) != usual
    return {} if chosen else {"BudgetUsd": str(USD_A_SEAT * seats)}


def _declared(kinds: Iterable[str], parameters: Mapping[str, str]) -> dict[str, str]:
    """Those of the parameters that the templates of these stacks have."""
    known = {name for kind in kinds for name in template_parameters(kind)}
    return {key: value for key, value in parameters.items() if key in known}


def _given_to(seat: SeatSession, kinds: Iterable[str]) -> dict[str, str]:
    """The parameters with which a seat's stacks were made, but for those that are its own."""
    parameters = {
        key: value
        for stack in stacks.status(seat, kinds)
        for key, value in stack.parameters.items()
    }
    return {key: value for key, value in parameters.items() if key not in OWN_PARAMETERS}


def _sessions(session, names: Iterable[str]) -> list[SeatSession]:
    """Sessions of several seats with the same clients, which are made one after the other."""
    made: dict[str, Any] = {}
    lock = threading.Lock()  # boto3 can use a client in several threads, and make it only in one

    def client(service: str):
        with lock:
            if service not in made:
                made[service] = session.client(service)
            return made[service]

    return [SeatSession(session.target, name, session.region, client) for name in names]


def _each(
    act: Callable[[SeatSession], Any], seats: list[SeatSession]
) -> tuple[dict[str, Any], dict[str, Exception]]:
    """Do it for each seat, several at a time. Returns results and refusals by seat."""
    done, failed = {}, {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = {seat.seat: pool.submit(act, seat) for seat in seats}
        try:
            for name, future in futures.items():
                try:
                    done[name] = future.result()
                except REFUSALS as error:
                    failed[name] = error
        except BaseException:  # Ctrl-C: what has begun ends, the rest is not begun
            pool.shutdown(cancel_futures=True)
            raise
    return done, failed


def _raise_for(failed: Mapping[str, Exception]) -> None:
    if failed:
        lines = [f"{name}: {cleanup.refusal_reason(error)}" for name, error in failed.items()]
        raise StackError(
            f"{len(failed)} seats failed. Fix the cause, then run the same command "
            "again: what is done already is left alone.\n" + "\n".join(lines)
        )


def _cost(seat: SeatSession) -> SeatCost:
    row, client = SeatCost(seat.seat), seat.client("sagemaker")
    pages = client.get_paginator("list_training_jobs").paginate(NameContains=seat.job_prefix)
    names = [job["TrainingJobName"] for page in pages for job in page["TrainingJobSummaries"]]
    for name in (name for name in names if name.startswith(seat.job_prefix)):
        job = client.describe_training_job(TrainingJobName=name)
        instances, seconds = job["ResourceConfig"], job.get("BillableTimeInSeconds", 0)
        row.jobs += 1
        try:
            row.usd += cost(instances["InstanceType"], instances["InstanceCount"], seconds).usd
        except (PriceNotKnown, KeyError):
            row.unknown += 1
    inventory = cleanup.find(seat)
    row.usd_per_hour = inventory.usd_per_hour
    row.by_the_hour = [f"{each.kind}: {each.name}" for each in inventory.by_the_hour]
    unpriced = [each for each in inventory.owned if each.usd_per_hour is None]
    row.unknown += len(unpriced) + len(inventory.unseen)
    return row
