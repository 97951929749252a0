"""The CloudFormation stacks of a seat: deployed, and deleted.

Running it again is safe: what is done is left alone, and what was interrupted is finished.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from botocore.exceptions import ClientError

from workshop.account import notebook_instance
from workshop.jobs.seat import (
    ALL,
    NEEDS,
    NETWORKS,
    NOT_THERE,
    ROOM,
    STACKS,
    MissingStack,
    StackError,
    StackStatus,
    check_ours,
    create_or_update,
    delete_settled,
    describe,
    explained,
    in_order,
    outputs,
    outputs_of,
    settled,
    stack_name,
    status,
    tags,
    template_parameters,
)

__all__ = [
    "ALL",
    "NOT_THERE",
    "ROOM",
    "STACKS",
    "Deployed",
    "MissingStack",
    "StackError",
    "StackStatus",
    "check_parameters",
    "delete",
    "deploy",
    "outputs",
    "stack_name",
    "status",
    "tags",
]


@dataclass(frozen=True)
class Deployed:
    """One stack after `deploy`. change: "created", "updated" or "no change"."""

    name: str
    change: str
    seconds: float
    outputs: dict[str, str]


def deploy(
    session,
    names: Iterable[str] = STACKS,
    say: Callable[[str], None] = print,
    parameters: Mapping[str, str] | None = None,
) -> list[Deployed]:
    """Create or update a seat's stacks, in order. Running it again changes nothing.

    Args:
        session: what workshop.session returned.
        say: takes a line of progress for each stack.
        parameters: values for the templates' parameters. The rest keep what they have, or
            the template's default.

    Raises StackError with CloudFormation's own reason.
    """
    names, parameters = in_order(names), dict(parameters or {})
    check_parameters(names, parameters)
    _check_needs(session, names)
    done = []
    for name in names:
        began, full = time.monotonic(), stack_name(session.seat, name)
        if name == "notebook" and not parameters.get("Kit"):
            with explained(full):
                notebook_instance.upload_kit(session)
        change = create_or_update(session, name, parameters)
        found = outputs(session, (name,))
        done.append(Deployed(full, change, time.monotonic() - began, found))
        say(f"{full}: {change}, {done[-1].seconds:.1f} s")
    return done


def delete(
    session, names: Iterable[str] | None = None, say: Callable[[str], None] = print
) -> list[str]:
    """Delete a seat's stacks and wait until they are gone. Running it again changes nothing.

    Args:
        session: what workshop.session returned.
        names: which; without them all of the seat's stacks.
        say: takes a line of progress for each stack.

    Returns the names of those that were there, in CloudFormation's form.

    Raises StackError, before anything is deleted, if a stack is not the kit's, if the bucket is
    not empty, or if another stack needs one of these; and if CloudFormation cannot delete one.
    """
    client, seat = session.client("cloudformation"), session.seat
    wanted = in_order(ALL if names is None else names)
    found = {}
    for name in in_order([*ALL, *wanted]):
        with explained(stack_name(seat, name)):
            if stack := describe(client, stack_name(seat, name)):
                found[name] = stack
    for name in wanted:
        if name in found:
            check_ours(found[name], seat)
            _check_not_needed(name, wanted, found)
    if "storage" in wanted and "storage" in found:
        with explained(stack_name(seat, "storage")):
            _check_empty(session, found["storage"])
    gone = [stack_name(seat, name) for name in reversed(wanted) if name in found]
    for full in gone:
        with explained(full):
            if settled(client, full):  # an operation that still runs ends first
                delete_settled(client, full)
        say(f"{full}: deleted")
    return gone


def check_parameters(names: Iterable[str], given: Mapping[str, str]) -> None:
    """Raise StackError unless each given parameter is one of these stacks', with a good value."""
    names = list(names)
    known = {
        key: declared
        for name in names
        for key, declared in template_parameters(name).items()
        if key != "Seat"
    }
    for key, value in given.items():
        if key not in known:
            offer = ", ".join(known) or "none"
            raise StackError(
                f"{', '.join(names)}: no parameter {key!r}. The parameters that can be given: "
                f"{offer}."
            )
        if wrong := wrong_value(known[key], value):
            raise StackError(f"{key} is {value!r}; {wrong}")


def wrong_value(declared: Mapping, value: str) -> str:
    """What is wrong with a value for a template's parameter; empty if nothing."""
    allowed = [str(choice) for choice in declared.get("AllowedValues", [])]
    if allowed and value not in allowed:
        return f"it must be one of: {', '.join(allowed)}."
    if declared["Type"] == "Number":
        low, high = declared.get("MinValue"), declared.get("MaxValue")
        if not re.fullmatch(r"\d+", value) or not low <= int(value) <= high:
            return f"it must be a whole number from {low} to {high}."
    pattern = declared.get("AllowedPattern", "")
    if pattern and not re.fullmatch(pattern, value):
        return declared.get("ConstraintDescription", f"it must match {pattern}")
    return ""


def _check_needs(session, names: list[str]) -> None:
    """Raise MissingStack if one of them uses a stack that is neither there nor named."""
    needed = {need for name in names for need in NEEDS.get(name, ()) if need not in names}
    for stack in status(session, needed):
        if not stack.usable:
            raise MissingStack(
                f"The stack {stack.stack} is {stack.state}, and {', '.join(names)} cannot be made "
                f"without it. Name it, too: workshop stacks up {' '.join((stack.name, *names))}"
            )
    for name in set(names) & set(NETWORKS):
        (other,) = set(NETWORKS) - {name}
        (there,) = status(session, (other,))
        if there.state != NOT_THERE or other in names:
            raise StackError(
                f"A seat has one network: {stack_name(session.seat, name)} cannot be made beside "
                f"{there.stack}. Use that one, or delete it first: workshop stacks down {other} "
                f"--seat {session.seat}"
            )


def _check_not_needed(name: str, wanted: list[str], found: dict) -> None:
    for other, needs in NEEDS.items():
        if name in needs and other in found and other not in wanted:
            raise StackError(
                f"The stack {found[name]['StackName']} cannot be deleted: "
                f"{found[other]['StackName']} uses its outputs. Delete that one, too."
            )


def _check_empty(session, stack: dict) -> None:
    bucket = outputs_of(stack).get("BucketName")
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
