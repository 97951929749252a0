"""`deploy`: stacks are created, updated, or left alone if nothing has changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from botocore.exceptions import ClientError

from workshop.stacks import kit, templates
from workshop.stacks.errors import MissingStack, StackError, asking
from workshop.stacks.names import NEEDS, STACKS, in_order, stack_name, tags
from workshop.stacks.reading import check_ours, outputs_of, parameters_of, status
from workshop.stacks.watching import Event, describe, last_event, reason, settle

# What a first creation that failed, or a deletion that failed, leaves can only be deleted.
ONLY_TO_DELETE = (
    "ROLLBACK_COMPLETE",
    "ROLLBACK_FAILED",
    "CREATE_FAILED",
    "DELETE_FAILED",
    "REVIEW_IN_PROGRESS",
)
DONE = ("CREATE_COMPLETE", "UPDATE_COMPLETE")


@dataclass(frozen=True)
class Deployed:
    """One stack after `deploy`. change: "created", "updated" or "no change"."""

    name: str
    change: str
    seconds: float
    outputs: dict[str, str]


def deploy(
    session,
    names: tuple[str, ...] = STACKS,
    say: Callable[[str], None] = print,
    parameters: Mapping[str, str] | None = None,
    on_event: Callable[[Event], None] = lambda _: None,
) -> list[Deployed]:
    """Create or update a seat's stacks, in order. Doing it again changes nothing.

    Args:
        session: what workshop.session returned.
        say: takes a line of progress a stack. on_event: takes what CloudFormation does.
        parameters: values for the templates' parameters. The rest keep what they have, or
            the template's default.

    Raises StackError with CloudFormation's own reason.
    """
    names, parameters = in_order(names), dict(parameters or {})
    templates.check(names, parameters)
    _check_needs(session, names)
    client, done = session.client("cloudformation"), []
    for name in names:
        began, full = time.monotonic(), stack_name(session.seat, name)
        if name == "notebook" and not parameters.get("Kit"):
            kit.upload(session)
        with asking(full):
            change = _Making(client, session.seat, name, parameters, on_event).run()
            found = outputs_of(describe(client, full))
        done.append(Deployed(full, change, time.monotonic() - began, found))
        say(f"{full}: {change}, {done[-1].seconds:.1f} s")
    return done


def _check_needs(session, names: list[str]) -> None:
    """Raise MissingStack if one of them uses a stack that is neither there nor named."""
    needed = {need for name in names for need in NEEDS.get(name, ()) if need not in names}
    for one in status(session, needed):
        if not one.usable:
            raise MissingStack(
                f"The stack {one.stack} is {one.state}, and {', '.join(names)} cannot be made "
                f"without it. Name it, too: workshop stacks up {' '.join((one.name, *names))}"
            )


class _Making:
    """One stack on its way from whatever state it is in to the template's."""

    def __init__(self, client, seat: str, name: str, parameters, on_event) -> None:
        self.client, self.seat, self.name, self.on_event = client, seat, name, on_event
        self.full, self.body = stack_name(seat, name), templates.body(name)
        self.declared = templates.parameters(name)
        self.given = {key: value for key, value in parameters.items() if key in self.declared}

    def run(self) -> str:
        stack = self._settle()
        if stack:
            check_ours(stack, self.seat)
        if stack and stack["StackStatus"] in ONLY_TO_DELETE:
            self._clear(stack)
            stack = None
        if stack is None:
            made = self.client.create_stack(**self._request(self.given))
            return self._checked(made["StackId"], "created")
        if stack["StackStatus"] == "UPDATE_ROLLBACK_FAILED":
            self.client.continue_update_rollback(StackName=self.full)
            stack = self._settle()
        return self._update(stack)

    def _update(self, stack: dict) -> str:
        # Whoever chose other values for some of the parameters keeps them.
        kept = {k: v for k, v in parameters_of(stack).items() if k in self.declared}
        wanted = {**kept, **self.given}
        held = self.client.get_template(StackName=self.full)["TemplateBody"]
        if held == self.body and wanted == kept:
            return "no change"
        since = last_event(self.client, stack["StackId"])
        try:
            self.client.update_stack(**self._request(wanted))
        except ClientError as error:
            if "No updates are to be performed" in str(error):
                return "no change"
            raise
        return self._checked(stack["StackId"], "updated", since)

    def _clear(self, stack: dict) -> None:
        self.client.delete_stack(StackName=self.full)
        left = self._settle(stack["StackId"])
        if left:
            raise StackError(
                f"What an earlier creation left of the stack {self.full} could not be deleted: "
                f"{left['StackStatus']}. {reason(self.client, stack['StackId'])}"
            )

    def _checked(self, stack_id: str, change: str, since: str = "") -> str:
        stack = self._settle(stack_id, since)
        if stack and stack["StackStatus"] in DONE:
            return change
        state = stack["StackStatus"] if stack else "gone"
        raise StackError(
            f"The stack {self.full} could not be {change}: {state}. "
            f"{reason(self.client, stack_id, since)}"
        )

    def _settle(self, stack_id: str = "", since: str = "") -> dict | None:
        return settle(self.client, self.full, self.on_event, stack_id, since)

    def _request(self, values: Mapping[str, str]) -> dict:
        values = {**values, "Seat": self.seat}
        return {
            "StackName": self.full,
            "TemplateBody": self.body,
            "Parameters": [
                {"ParameterKey": key, "ParameterValue": value} for key, value in values.items()
            ],
            "Capabilities": ["CAPABILITY_IAM"],
            "Tags": tags(self.seat),
        }
