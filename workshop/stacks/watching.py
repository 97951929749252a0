"""CloudFormation at work: its events, as they come, and the reason when it fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from botocore.exceptions import ClientError

from workshop.stacks.errors import StackError

WAIT_SECONDS = 30 * 60  # a NAT gateway or a notebook instance takes minutes
POLL_SECONDS = 2
BEGINNINGS = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS")
# Left by a change set that nobody has run: nothing is at work there.
NOT_AT_WORK = "REVIEW_IN_PROGRESS"


@dataclass(frozen=True)
class Event:
    """What CloudFormation did: a resource, its new state, and why if it says so."""

    resource: str
    state: str
    reason: str = ""


def describe(client, full: str) -> dict | None:
    """A stack by its name; None if there is none.

    Never ask by the id of a deleted stack: moto makes its bucket again to answer.
    """
    try:
        stack = client.describe_stacks(StackName=full)["Stacks"][0]
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise
    return None if stack["StackStatus"] == "DELETE_COMPLETE" else stack


def settle(
    client, full: str, on_event: Callable[[Event], None], stack_id: str = "", since: str = ""
) -> dict | None:
    """Wait until nothing is in progress on a stack. Returns it, or None if there is none.

    stack_id: of an operation that was just begun; since: the last event before it. on_event takes
    each event of that operation once, or of one that is found in progress.
    Raises StackError after WAIT_SECONDS.
    """
    deadline, told = time.monotonic() + WAIT_SECONDS, set()
    while True:
        stack = describe(client, full)
        busy = stack is not None and at_work(stack["StackStatus"])
        stack_id = stack_id or (stack["StackId"] if busy else "")
        for one in _operation(client, stack_id, since) if stack_id else ():
            if one["EventId"] not in told:
                told.add(one["EventId"])
                on_event(_event(one))
        if not busy:
            return stack
        if time.monotonic() > deadline:
            raise StackError(
                f"The stack {full} is still {stack['StackStatus']} after {WAIT_SECONDS} s. Look "
                "at its events in the CloudFormation console, then run this again."
            )
        time.sleep(POLL_SECONDS)


def at_work(state: str) -> bool:
    """Whether CloudFormation is doing something in this state."""
    return state.endswith("_IN_PROGRESS") and state != NOT_AT_WORK


def last_event(client, stack_id: str) -> str:
    """Id of a stack's newest event."""
    events = client.describe_stack_events(StackName=stack_id)["StackEvents"]
    return events[0]["EventId"] if events else ""


def reason(client, stack_id: str, since: str = "") -> str:
    """Why the last operation on a stack failed, in CloudFormation's words."""
    for one in _operation(client, stack_id, since):
        if one["ResourceStatus"].endswith("_FAILED") and one.get("ResourceStatusReason"):
            # The first failure is the cause; what was cancelled after it follows from it.
            return f"{one['LogicalResourceId']}: {one['ResourceStatusReason']}"
    return "CloudFormation gives no reason; look at the stack's events in its console."


def _operation(client, stack_id: str, since: str) -> list[dict]:
    """The events of the last operation, oldest first. AWS gives them newest first."""
    found = []
    for page in client.get_paginator("describe_stack_events").paginate(StackName=stack_id):
        for one in page["StackEvents"]:
            if since and one["EventId"] == since:
                return found[::-1]
            found.append(one)
            whole = one.get("PhysicalResourceId") == stack_id
            if whole and one["ResourceStatus"] in BEGINNINGS:
                return found[::-1]
    return found[::-1]


def _event(one: dict) -> Event:
    why = one.get("ResourceStatusReason") or ""
    return Event(one["LogicalResourceId"], one["ResourceStatus"], why)
