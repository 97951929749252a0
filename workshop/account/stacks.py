"""`delete`: stacks go, the last one made first. What is not the kit's is never touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from botocore.exceptions import ClientError

from workshop.stacks.errors import StackError, asking
from workshop.stacks.names import ALL, NEEDS, in_order, stack_name
from workshop.stacks.reading import check_ours, outputs_of
from workshop.stacks.watching import Event, describe, last_event, reason, settle


def delete(
    session,
    names: Iterable[str] | None = None,
    say: Callable[[str], None] = print,
    on_event: Callable[[Event], None] = lambda _: None,
) -> list[str]:
    """Delete a seat's stacks and wait until they are gone. Doing it again changes nothing.

    Args:
        session: what workshop.session returned.
        names: which; without them all that the seat can have.
        say: takes a line of progress a stack. on_event: takes what CloudFormation does.

    Returns the names of those that were there, in CloudFormation's form.

    Raises StackError, before anything is deleted, if a stack is not the kit's, if the bucket is
    not empty, or if another stack needs one of these; and if CloudFormation cannot delete one.
    """
    client, seat = session.client("cloudformation"), session.seat
    wanted = in_order(ALL if names is None else names)
    found = {name: stack for name in ALL if (stack := _ask(client, seat, name))}
    for name in wanted:
        if name in found:
            check_ours(found[name], seat)
            _check_not_needed(name, wanted, found)
    if "storage" in wanted and "storage" in found:
        with asking(stack_name(seat, "storage")):
            _check_empty(session, found["storage"])
    gone = [name for name in reversed(wanted) if name in found]
    for name in gone:
        full = stack_name(seat, name)
        with asking(full):
            _delete_one(client, full, found[name]["StackId"], on_event)
        say(f"{full}: deleted")
    return [stack_name(seat, name) for name in gone]


def _ask(client, seat: str, name: str) -> dict | None:
    with asking(stack_name(seat, name)):
        return describe(client, stack_name(seat, name))


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


def _delete_one(client, full: str, stack_id: str, on_event: Callable[[Event], None]) -> None:
    if settle(client, full, on_event) is None:  # an operation that still runs ends first
        return
    since = last_event(client, stack_id)
    client.delete_stack(StackName=stack_id)
    if stack := settle(client, full, on_event, stack_id, since):
        raise StackError(
            f"The stack {full} could not be deleted: {stack['StackStatus']}. "
            f"{reason(client, stack_id, since)} Run the same again when that is mended."
        )
