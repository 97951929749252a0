"""What stands: the state of a seat's stacks, and their outputs."""

from __future__ import annotations

from dataclasses import dataclass, field

from workshop.stacks.errors import MissingStack, StackError, asking
from workshop.stacks.names import ALL, STACKS, in_order, stack_name, tags
from workshop.stacks.watching import at_work, describe, reason

NOT_THERE = "not there"
NOT_USABLE = ("ROLLBACK_COMPLETE", "DELETE_COMPLETE")


@dataclass(frozen=True)
class Standing:
    """A known stack of a seat. state: CloudFormation's, or "not there". reason: empty if usable."""

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


def status(session, names: tuple[str, ...] = ALL) -> list[Standing]:
    """The state of each stack that a seat can have, in the order in which they are made.

    Raises StackError if CloudFormation does not say.
    """
    client = session.client("cloudformation")
    return [_standing(client, session.seat, name) for name in in_order(names)]


def outputs(session, names: tuple[str, ...] = STACKS) -> dict[str, str]:
    """All outputs of a seat's stacks. Raises MissingStack if one is not there (yet)."""
    client, found = session.client("cloudformation"), {}
    for name in names:
        full = stack_name(session.seat, name)
        stack = describe(client, full)
        if stack is None or not _usable(stack["StackStatus"]):
            state = stack["StackStatus"] if stack else NOT_THERE
            raise MissingStack(f"The stack {full} is {state} in {session.region}. {_remedy(name)}")
        found |= outputs_of(stack)
    return found


def outputs_of(stack: dict | None) -> dict[str, str]:
    found = stack.get("Outputs") or [] if stack else []
    return {one["OutputKey"]: one["OutputValue"] for one in found}


def parameters_of(stack: dict) -> dict[str, str]:
    found = stack.get("Parameters") or []
    return {one["ParameterKey"]: one["ParameterValue"] for one in found}


def check_ours(stack: dict, seat: str) -> None:
    """Raise StackError unless a stack carries the tags that the kit gives."""
    found = {one["Key"]: one["Value"] for one in stack.get("Tags") or []}
    for tag in tags(seat):
        if found.get(tag["Key"]) != tag["Value"]:
            raise StackError(
                f"A stack {stack['StackName']} is there, but without the tag "
                f"{tag['Key']}={tag['Value']}: this kit did not make it, and leaves it alone. "
                "Choose another seat, or look at it in the CloudFormation console."
            )


def _standing(client, seat: str, name: str) -> Standing:
    full = stack_name(seat, name)
    with asking(full):
        stack = describe(client, full)
        if stack is None:
            return Standing(name, full, NOT_THERE)
        state = stack["StackStatus"]
        return Standing(
            name,
            full,
            state,
            outputs_of(stack),
            parameters_of(stack),
            _why_not(client, stack, seat),
        )


def _why_not(client, stack: dict, seat: str) -> str:
    """Why a stack cannot be used; empty if it can."""
    try:
        check_ours(stack, seat)
    except StackError as error:
        return str(error)
    if _usable(stack["StackStatus"]):
        return ""
    if at_work(stack["StackStatus"]):
        return "CloudFormation is still at work."
    return reason(client, stack["StackId"])


def _usable(state: str) -> bool:
    return state.endswith("_COMPLETE") and state not in NOT_USABLE


def _remedy(name: str) -> str:
    if name in STACKS:
        return "Run lesson 00, which makes the stacks, or call workshop.deploy(session)."
    return f"Make it: workshop stacks up {name}"
