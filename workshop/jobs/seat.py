"""A seat: one learner's share of an account. Its names, its tags, its CloudFormation stacks.

The same calls go to AWS and to the emulator. Doing any of them again is safe: what is done
already is left alone, and what was interrupted is finished. `workshop.account.stacks` deploys and
deletes several.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml
from botocore.exceptions import BotoCoreError, ClientError, WaiterError

from workshop.paths import CLOUDFORMATION

STACKS = ("storage", "roles")  # what every lesson needs; costs nothing while nothing is stored
# What a seat can have. Each may use the exports of those before it, and is made only when it is
# named. A seat has a network of its own, or subnets in the VPC of a class; their outputs are alike.
ALL = (*STACKS, "network", "subnets", "notebook")
NETWORKS = ("network", "subnets")
ROOM = "room"  # what the seats of a class share, under the class's own name
NEEDS = {  # whose exports of the same seat a stack imports
    "roles": ("storage",),
    "network": ("storage", "roles"),
    "subnets": ("roles",),
    "notebook": ("storage", "roles"),
}

NOT_THERE = "not there"
DONE = ("CREATE_COMPLETE", "UPDATE_COMPLETE")
NOT_USABLE = ("ROLLBACK_COMPLETE", "DELETE_COMPLETE")
# What a first creation that failed, or a deletion that failed, leaves can only be deleted.
ONLY_TO_DELETE = (
    "ROLLBACK_COMPLETE",
    "ROLLBACK_FAILED",
    "CREATE_FAILED",
    "DELETE_FAILED",
    "REVIEW_IN_PROGRESS",
)
WAIT = {"Delay": 5, "MaxAttempts": 360}  # a NAT gateway or a notebook instance takes minutes
WAITERS = {  # how a state that is in progress begins -> botocore's waiter for its end
    "CREATE": "stack_create_complete",
    "ROLLBACK": "stack_create_complete",
    "UPDATE": "stack_update_complete",
    "IMPORT": "stack_import_complete",
    "DELETE": "stack_delete_complete",
}
TRIES, PAUSE_SECONDS = 20, 60  # of a deletion that EC2 refuses for what is still in use
STILL_IN_USE = re.compile("dependen|in use", re.IGNORECASE)  # EC2: "has a dependent object"
BEGINNINGS = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS")


class StackError(Exception):
    """A stack cannot be made, used or deleted; the message says why and what to do."""


class MissingStack(StackError):
    """The seat has no such stack yet."""


@dataclass(frozen=True)
class StackStatus:
    """A stack of a seat. state: CloudFormation's, or "not there". reason: empty if usable."""

    name: str  # "storage"
    stack: str  # "workshop-me-storage"
    state: str
    outputs: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    reason: str = ""

    @property
    def usable(self) -> bool:
        """Whether its outputs can be used."""
        return self.state != NOT_THERE and not self.reason


def stack_name(seat: str, name: str) -> str:
    """The name of a seat's stack in CloudFormation."""
    return f"workshop-{seat}-{name}"


def tags(seat: str) -> list[dict[str, str]]:
    """The tags of everything that the kit makes."""
    return [{"Key": "workshop", "Value": "data-parallel"}, {"Key": "seat", "Value": seat}]


def in_order(names: Iterable[str]) -> list[str]:
    """The names, each once, in the order in which they are made. Raises StackError."""
    wanted = set(names)
    known = (*ALL, ROOM)
    if unknown := sorted(wanted - set(known)):
        raise StackError(f"There is no stack {unknown[0]!r}. There are: {', '.join(known)}.")
    return [name for name in known if name in wanted]


def status(session, names: Iterable[str] = ALL) -> list[StackStatus]:
    """The state of each stack that a seat can have, in the order in which they are made.

    Raises StackError if CloudFormation does not say.
    """
    client = session.client("cloudformation")
    return [_status(client, session.seat, name) for name in in_order(names)]


def outputs(session, names: Iterable[str] = STACKS) -> dict[str, str]:
    """All outputs of a seat's stacks.

    Raises MissingStack if one is not there (yet), StackError if CloudFormation does not say.
    """
    client, found = session.client("cloudformation"), {}
    for name in names:
        full = stack_name(session.seat, name)
        with explained(full):
            stack = describe(client, full)
        if stack is None or not _usable(stack["StackStatus"]):
            state = stack["StackStatus"] if stack else NOT_THERE
            raise MissingStack(f"The stack {full} is {state} in {session.region}. {_remedy(name)}")
        found |= outputs_of(stack)
    return found


def create_or_update(session, name: str, parameters: Mapping[str, str] | None = None) -> str:
    """Bring one stack of a seat to its template, from whatever state it is in; wait for the end.

    parameters: values for the template; the rest keep what they have, or the default.
    Returns "created", "updated" or "no change". Raises StackError with CloudFormation's reason.
    """
    client, full = session.client("cloudformation"), stack_name(session.seat, name)
    declared = template_parameters(name)
    given = {key: value for key, value in (parameters or {}).items() if key in declared}
    with explained(full):
        stack = settled(client, full)
        if stack:
            check_ours(stack, session.seat)
        if stack and stack["StackStatus"] in ONLY_TO_DELETE:
            delete_settled(client, full)
            stack = None
        if stack is None:
            client.create_stack(**_request(session.seat, name, given))
            return _checked(client, full, "created")
        if stack["StackStatus"] == "UPDATE_ROLLBACK_FAILED":
            client.continue_update_rollback(StackName=full)
            stack = settled(client, full)
        # Whoever chose other values for some of the parameters keeps them.
        kept = {key: value for key, value in parameters_of(stack).items() if key in declared}
        held = client.get_template(StackName=full)["TemplateBody"]
        if held == template(name) and kept | given == kept:
            return "no change"
        try:
            client.update_stack(**_request(session.seat, name, kept | given))
        except ClientError as error:
            if "No updates are to be performed" in str(error):
                return "no change"
            raise
        return _checked(client, full, "updated")


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


def settled(client, full: str) -> dict | None:
    """A stack, once nothing is in progress on it, however that ends; None if there is none.

    Raises StackError if it is still in progress after half an hour.
    """
    stack = describe(client, full)
    if stack is None or not _in_progress(stack["StackStatus"]):
        return stack
    waiter = client.get_waiter(WAITERS[stack["StackStatus"].split("_")[0]])
    with contextlib.suppress(WaiterError):  # a failure is a state, and the caller looks at it
        waiter.wait(StackName=full, WaiterConfig=WAIT)
    stack = describe(client, full)
    if stack and _in_progress(stack["StackStatus"]):
        raise StackError(
            f"The stack {full} is still {stack['StackStatus']}. Look at its events in the "
            "CloudFormation console, then run the same again."
        )
    return stack


def delete_settled(client, full: str) -> None:
    """Delete a stack on which nothing is in progress, again while something in its VPC is in use.

    SageMaker takes minutes to remove a job's or an endpoint's network interfaces after its end,
    and EC2 deletes no subnet and no security group before.
    """
    for last in [False] * (TRIES - 1) + [True]:
        client.delete_stack(StackName=full)
        if not (stack := settled(client, full)):
            return
        why = failure_reason(client, stack["StackId"])
        if last or not STILL_IN_USE.search(why):
            raise StackError(
                f"The stack {full} could not be deleted: {stack['StackStatus']}. {why} "
                "Fix the cause, then run the same command again."
            )
        time.sleep(PAUSE_SECONDS)


def failure_reason(client, stack_id: str) -> str:
    """Why the last operation on a stack failed, in CloudFormation's words."""
    failed = []
    pages = client.get_paginator("describe_stack_events").paginate(StackName=stack_id)
    for event in itertools.chain.from_iterable(page["StackEvents"] for page in pages):
        if event["ResourceStatus"].endswith("_FAILED") and event.get("ResourceStatusReason"):
            failed.append(f"{event['LogicalResourceId']}: {event['ResourceStatusReason']}")
        if event.get("PhysicalResourceId") == stack_id and event["ResourceStatus"] in BEGINNINGS:
            break
    # Events come newest first. The oldest failure is the cause; others follow from it.
    if failed:
        return failed[-1]
    return "CloudFormation gives no reason; look at the stack's events in its console."


def check_ours(stack: dict, seat: str) -> None:
    """Raise StackError unless a stack carries the tags that the kit gives."""
    found = {tag["Key"]: tag["Value"] for tag in stack.get("Tags") or []}
    for tag in tags(seat):
        if found.get(tag["Key"]) != tag["Value"]:
            raise StackError(
                f"A stack {stack['StackName']} is there, but without the tag "
                f"{tag['Key']}={tag['Value']}: this kit did not make it, and leaves it alone. "
                "Choose another seat, or look at it in the CloudFormation console."
            )


@contextlib.contextmanager
def explained(full: str) -> Iterator[None]:
    """A refusal of AWS, or no answer, becomes a StackError that names the stack."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise StackError(
            f"The stack {full}: {error}. What CloudFormation has begun, it finishes without this "
            "program. Remove the cause, then run the same again: it does what is left."
        ) from error


def outputs_of(stack: dict | None) -> dict[str, str]:
    """The outputs of a described stack; none for None."""
    found = stack.get("Outputs") or [] if stack else []
    return {output["OutputKey"]: output["OutputValue"] for output in found}


def parameters_of(stack: dict) -> dict[str, str]:
    """The parameters with which a described stack was made."""
    found = stack.get("Parameters") or []
    return {given["ParameterKey"]: given["ParameterValue"] for given in found}


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # libyaml's, where there is one
    """YAML with CloudFormation's short forms (!Ref, !Sub ...), whose arguments are kept as text."""


_Loader.add_multi_constructor("!", lambda loader, tag, node: f"!{tag} {node.value}")


def template(name: str) -> str:
    """The text of a stack's template."""
    return (CLOUDFORMATION / f"{name}.yaml").read_text(encoding="utf-8")


def template_parameters(name: str) -> dict[str, dict[str, Any]]:
    """The parameters that a stack's template declares."""
    return _parsed(template(name)).get("Parameters", {})


def template_resources(name: str) -> dict[str, dict[str, Any]]:
    """The resources of a stack's template, by their logical ids."""
    return _parsed(template(name))["Resources"]


@cache
def _parsed(text: str) -> dict[str, Any]:
    return yaml.load(text, Loader=_Loader)


def _status(client, seat: str, name: str) -> StackStatus:
    full = stack_name(seat, name)
    with explained(full):
        stack = describe(client, full)
        if stack is None:
            return StackStatus(name, full, NOT_THERE)
        why = _why_not_usable(client, stack, seat)
    found = outputs_of(stack), parameters_of(stack)
    return StackStatus(name, full, stack["StackStatus"], *found, why)


def _why_not_usable(client, stack: dict, seat: str) -> str:
    """Empty if a stack can be used."""
    try:
        check_ours(stack, seat)
    except StackError as error:
        return str(error)
    if _usable(stack["StackStatus"]):
        return ""
    if _in_progress(stack["StackStatus"]):
        return "CloudFormation is still at work."
    return failure_reason(client, stack["StackId"])


def _usable(state: str) -> bool:
    return state.endswith("_COMPLETE") and state not in NOT_USABLE


def _in_progress(state: str) -> bool:
    """Whether CloudFormation is doing something: a change set that nobody has run is nothing."""
    return state.endswith("_IN_PROGRESS") and state != "REVIEW_IN_PROGRESS"


def _remedy(name: str) -> str:
    if name in STACKS:
        return "Run lesson 00, which makes the stacks, or call workshop.deploy(session)."
    return f"Make it: workshop stacks up {name}"


def _checked(client, full: str, change: str) -> str:
    stack = settled(client, full)
    if stack and stack["StackStatus"] in DONE:
        return change
    state, why = ("gone", "") if stack is None else (stack["StackStatus"], stack["StackId"])
    why = failure_reason(client, why) if why else "Run the same again."
    raise StackError(f"The stack {full} could not be {change}: {state}. {why}")


def _request(seat: str, name: str, values: Mapping[str, str]) -> dict:
    return {
        "StackName": stack_name(seat, name),
        "TemplateBody": template(name),
        "Parameters": [
            {"ParameterKey": key, "ParameterValue": value}
            for key, value in {**values, "Seat": seat}.items()
        ],
        "Capabilities": ["CAPABILITY_IAM"],
        "Tags": tags(seat),
    }
