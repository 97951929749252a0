"""The CloudFormation stacks of a seat: create, update, leave alone what has not changed.

The same calls go to AWS and to the local endpoint.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from botocore.exceptions import ClientError

from workshop.paths import CLOUDFORMATION

STACKS = ("storage", "roles")  # each may use the exports of those before it
WAIT_SECONDS = 15 * 60


class StackError(Exception):
    """A stack cannot be made or used; the message says why and what to do."""


class MissingStack(StackError):
    """The seat has no such stack yet."""


@dataclass(frozen=True)
class Deployed:
    """One stack after `deploy`. change: "created", "updated" or "no change"."""

    name: str
    change: str
    seconds: float
    outputs: dict[str, str]


def stack_name(seat: str, name: str) -> str:
    """The name of a seat's stack in CloudFormation."""
    return f"workshop-{seat}-{name}"


def tags(seat: str) -> list[dict[str, str]]:
    """The tags of everything that the kit makes."""
    return [{"Key": "workshop", "Value": "data-parallel"}, {"Key": "seat", "Value": seat}]


def deploy(session, names: tuple[str, ...] = STACKS, say=print) -> list[Deployed]:
    """Create or update a seat's stacks, in order. Doing it again changes nothing.

    session: what workshop.session returned. say: takes a line of progress a stack.
    Raises StackError with CloudFormation's own reason.
    """
    client, done = session.client("cloudformation"), []
    for name in names:
        began = time.monotonic()
        change = _deploy_one(client, session.seat, name)
        spent = time.monotonic() - began
        found = _outputs(_describe(client, stack_name(session.seat, name)))
        done.append(Deployed(stack_name(session.seat, name), change, spent, found))
        say(f"{done[-1].name}: {change}, {spent:.1f} s")
    return done


def outputs(session, names: tuple[str, ...] = STACKS) -> dict[str, str]:
    """All outputs of a seat's stacks. Raises MissingStack if one is not there (yet)."""
    client, found = session.client("cloudformation"), {}
    for name in names:
        full = stack_name(session.seat, name)
        stack = _describe(client, full)
        if stack is None or not _usable(stack):
            status = stack["StackStatus"] if stack else "not there"
            raise MissingStack(
                f"The stack {full} is {status} in {session.region}. Run lesson 00, which makes "
                "the stacks, or call workshop.deploy(session)."
            )
        found |= _outputs(stack)
    return found


def _deploy_one(client, seat: str, name: str) -> str:
    full, body = stack_name(seat, name), (CLOUDFORMATION / f"{name}.yaml").read_text()
    request = {
        "StackName": full,
        "TemplateBody": body,
        "Parameters": [{"ParameterKey": "Seat", "ParameterValue": seat}],
        "Capabilities": ["CAPABILITY_IAM"],
        "Tags": tags(seat),
    }
    stack = _settled(client, full)
    if stack and stack["StackStatus"] in ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED"):
        # A first creation that failed leaves a stack that can only be deleted.
        client.delete_stack(StackName=full)
        stack = _settled(client, full)
    if stack is None:
        client.create_stack(**request)
        return _checked(client, full, "created")
    if client.get_template(StackName=full)["TemplateBody"] == body:
        return "no change"
    try:
        # Whoever chose other values for the rest of the parameters keeps them.
        request["Parameters"] += [
            {"ParameterKey": one["ParameterKey"], "ParameterValue": one["ParameterValue"]}
            for one in stack.get("Parameters", [])
            if one["ParameterKey"] != "Seat" and f"\n  {one['ParameterKey']}:" in body
        ]
        client.update_stack(**request)
    except ClientError as error:
        if "No updates are to be performed" in str(error):
            return "no change"
        raise
    return _checked(client, full, "updated")


def _checked(client, full: str, change: str) -> str:
    stack = _settled(client, full)
    if stack and stack["StackStatus"] in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        return change
    status = stack["StackStatus"] if stack else "gone"
    raise StackError(f"The stack {full} could not be {change}: {status}. {_reason(client, full)}")


def _reason(client, full: str) -> str:
    pages = client.get_paginator("describe_stack_events").paginate(StackName=full)
    failed = [
        event
        for page in pages
        for event in page["StackEvents"]
        if event["ResourceStatus"].endswith("_FAILED") and "ResourceStatusReason" in event
    ]
    if not failed:
        return "CloudFormation gives no reason; look at the stack's events in the console."
    # Events come newest first; the oldest failure is the cause, the others follow from it.
    return f"{failed[-1]['LogicalResourceId']}: {failed[-1]['ResourceStatusReason']}"


def _settled(client, full: str) -> dict | None:
    """Wait until nothing is in progress; the stack, or None if there is none."""
    deadline = time.monotonic() + WAIT_SECONDS
    while (stack := _describe(client, full)) and stack["StackStatus"].endswith("_IN_PROGRESS"):
        if time.monotonic() > deadline:
            raise StackError(
                f"The stack {full} is still {stack['StackStatus']} after {WAIT_SECONDS} s. Look "
                "at its events in the CloudFormation console, then run this again."
            )
        time.sleep(2)
    return stack


def _describe(client, full: str) -> dict | None:
    try:
        stack = client.describe_stacks(StackName=full)["Stacks"][0]
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise
    return None if stack["StackStatus"] == "DELETE_COMPLETE" else stack


def _usable(stack: dict) -> bool:
    return stack["StackStatus"].endswith("_COMPLETE") and stack["StackStatus"] not in (
        "ROLLBACK_COMPLETE",
        "DELETE_COMPLETE",
    )


def _outputs(stack: dict | None) -> dict[str, str]:
    found = stack.get("Outputs", []) if stack else []
    return {one["OutputKey"]: one["OutputValue"] for one in found}
