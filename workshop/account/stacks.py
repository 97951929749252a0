"""A seat: one learner's share of an account. Its names, its tags, its CloudFormation stacks.

The same calls go to AWS and to the emulator. Doing any of them again is safe: what is done already
is left alone, and what was interrupted is finished.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import yaml
from botocore.exceptions import BotoCoreError, ClientError, WaiterError

from workshop.paths import CLOUDFORMATION, ROOT

# No hyphen: names such as workshop-a-... would be those of seat "a-b", too.
SEAT = re.compile(r"[a-z0-9]{1,16}")

STACKS = ("storage", "roles")  # what every lesson needs; costs nothing while nothing is stored
# What a seat can have. Each may use the exports of those before it, and is made only if named.
ALL = (*STACKS, "network", "notebook", "budget")
NEEDS = {  # whose exports of the same seat a stack imports
    "roles": ("storage",),
    "network": ("storage", "roles"),
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
KIT_KEY = "kit/kit.tar.gz"  # cloudformation/notebook.yaml looks for it there
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


def in_order(names: Iterable[str]) -> list[str]:
    """The names, each once, in the order in which they are made. Raises StackError."""
    chosen = set(names)
    if unknown := sorted(chosen - set(ALL)):
        raise StackError(f"There is no stack {unknown[0]!r}. There are: {', '.join(ALL)}.")
    return [name for name in ALL if name in chosen]


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
    values: dict[str, str] = {}
    for stack in status(session, names):
        if not stack.usable:
            reason = stack.reason or _remedy(stack.name)
            raise MissingStack(
                f"The stack {stack.stack} is {stack.state} in {session.region}. {reason}"
            )
        values |= stack.outputs
    return values


def deploy(
    session,
    names: Iterable[str] = STACKS,
    log: Callable[[str], None] = print,
    parameters: Mapping[str, str] | None = None,
) -> list[Deployed]:
    """Create or update a seat's stacks, in order. Running it again changes nothing.

    Args:
        session: what workshop.session returned.
        log: takes a line of progress for each stack.
        parameters: values for the templates' parameters. The rest keep what they have, or
            the template's default.

    Raises StackError with CloudFormation's own reason.
    """
    names, parameters = in_order(names), dict(parameters or {})
    _check_names(names, parameters)
    _check_needs(session, names)
    done = []
    for name in names:
        began, full = time.monotonic(), stack_name(session.seat, name)
        if name == "notebook" and not parameters.get("Kit"):
            with explained(full):
                upload_kit(session)
        change = create_or_update(session, name, parameters)
        seconds = time.monotonic() - began
        done.append(Deployed(full, change, seconds, outputs(session, (name,))))
        log(f"{full}: {change}, {done[-1].seconds:.1f} s")
    return done


def delete(session, names: Iterable[str] = ALL, log: Callable[[str], None] = print) -> list[str]:
    """Delete a seat's stacks and wait until they are gone. Running it again changes nothing.

    Args:
        session: what workshop.session returned.
        names: which; by default all of the seat's stacks.
        log: takes a line of progress for each stack.

    Returns the names of those that were there, in CloudFormation's form.

    Raises StackError, before anything is deleted, if a stack is not the kit's, if the bucket is
    not empty, or if another stack needs one of these; and if CloudFormation cannot delete one.
    """
    client, seat = session.client("cloudformation"), session.seat
    chosen = in_order(names)
    existing = {}
    for name in ALL:
        with explained(stack_name(seat, name)):
            if stack := describe(client, stack_name(seat, name)):
                existing[name] = stack
    for name in chosen:
        if name in existing:
            check_ours(existing[name], seat)
            _check_not_needed(name, chosen, existing)
    if "storage" in chosen and "storage" in existing:
        with explained(stack_name(seat, "storage")):
            _check_empty(session, existing["storage"])
    gone = [stack_name(seat, name) for name in reversed(chosen) if name in existing]
    for full in gone:
        with explained(full):
            if settled(client, full):  # an operation that still runs ends first
                delete_settled(client, full)
        log(f"{full}: deleted")
    return gone


def _check_names(names: Iterable[str], given: Iterable[str]) -> None:
    """Raise StackError for a parameter that none of these stacks' templates has.

    CloudFormation checks the values, and each stack gets its own parameters only.
    """
    known = dict.fromkeys(key for name in names for key in template_parameters(name))
    for key in given:
        if key not in known or key == "Seat":
            offer = ", ".join(key for key in known if key != "Seat") or "none"
            raise StackError(
                f"{', '.join(names)}: no parameter {key!r}. The parameters that can be given: "
                f"{offer}."
            )


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
        current = _values(stack or {}, "Parameter")
        current = {key: value for key, value in current.items() if key in declared}
        body = client.get_template(StackName=full)["TemplateBody"]
        if body == template(name) and current | given == current:
            return "no change"
        try:
            client.update_stack(**_request(session.seat, name, current | given))
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
        reason = failure_reason(client, stack["StackId"])
        if last or not STILL_IN_USE.search(reason):
            raise StackError(
                f"The stack {full} could not be deleted: {stack['StackStatus']}. {reason} "
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
    for tag in tags(seat):
        if tag not in (stack.get("Tags") or []):
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


def _values(stack: dict, kind: str) -> dict[str, str]:
    """The values of a described stack, by their names. kind: "Output" or "Parameter"."""
    return {row[f"{kind}Key"]: row[f"{kind}Value"] for row in stack.get(f"{kind}s") or []}


_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's, where there is one


class _Loader(_BASE):
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
        reason = _unusable_reason(client, stack, seat)
    values = _values(stack, "Output"), _values(stack, "Parameter")
    return StackStatus(name, full, stack["StackStatus"], *values, reason)


def _unusable_reason(client, stack: dict, seat: str) -> str:
    """Empty if a stack can be used."""
    try:
        check_ours(stack, seat)
    except StackError as error:
        return str(error)
    state = stack["StackStatus"]
    if state.endswith("_COMPLETE") and state not in NOT_USABLE:
        return ""
    if _in_progress(state):
        return "CloudFormation is still at work."
    return failure_reason(client, stack["StackId"])


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
    state, reason = "gone", "Run the same again."
    if stack:
        state, reason = stack["StackStatus"], failure_reason(client, stack["StackId"])
    raise StackError(f"The stack {full} could not be {change}: {state}. {reason}")


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


def upload_kit(session) -> None:
    """Put the kit, as it was last committed, into the seat's bucket.

    A .tar.gz and not a .zip, since the kit's programs have to stay executable.
    Raises StackError if this is no git checkout, or there is no bucket.
    """
    bucket = outputs(session, ("storage",))["BucketName"]
    session.client("s3").put_object(Bucket=bucket, Key=KIT_KEY, Body=_packed())


def _packed() -> bytes:
    git = shutil.which("git")
    command = [git or "git", "-C", str(ROOT), "archive", "--format=tar.gz", "HEAD"]
    done = subprocess.run(command, capture_output=True) if git else None
    if done is None or done.returncode:
        reason = done.stderr.decode(errors="replace").strip() if done else "there is no git here"
        raise StackError(
            f"The kit for the notebook instance cannot be packed from {ROOT}: {reason}. Say where "
            "the instance finds it: --parameter Kit=https://... (for git clone)."
        )
    return done.stdout


def _check_needs(session, names: list[str]) -> None:
    """Raise MissingStack if one of them uses a stack that is neither there nor named."""
    needed = {need for name in names for need in NEEDS.get(name, ()) if need not in names}
    for stack in status(session, needed):
        if not stack.usable:
            raise MissingStack(
                f"The stack {stack.stack} is {stack.state}, and {', '.join(names)} cannot be made "
                f"without it. Name it, too: workshop stacks up {' '.join((stack.name, *names))}"
            )


def _check_not_needed(name: str, chosen: list[str], existing: dict) -> None:
    for other, needs in NEEDS.items():
        if name in needs and other in existing and other not in chosen:
            raise StackError(
                f"The stack {existing[name]['StackName']} cannot be deleted: "
                f"{existing[other]['StackName']} uses its outputs. Delete that one, too."
            )


def _check_empty(session, stack: dict) -> None:
    bucket = _values(stack, "Output").get("BucketName")
    if not bucket:  # a creation that failed made none
        return
    try:
        page = session.client("s3").list_object_versions(Bucket=bucket, MaxKeys=1)
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchBucket":
            return
        raise
    if page.get("Versions") or page.get("DeleteMarkers"):
        raise StackError(
            f"The bucket {bucket} is not empty, so the stack {stack['StackName']} cannot be "
            "deleted. `workshop clean` shows what is in it, empties it and deletes the stacks."
        )
