"""CloudFormation in the states that moto never reaches."""

from types import SimpleNamespace

from botocore.exceptions import ClientError

from workshop import stacks

SEAT = "me"


class FakeCloudFormation:
    """Answers with given states, and notes what it is told to change.

    states: StackStatus of each coming describe_stacks, the last one for ever; None: no such stack.
    events: (resource, state, reason), oldest first. later: those after the first change.
    """

    def __init__(self, *states, events=(), later=(), template=""):
        self.states, self.changes, self.template = list(states), [], template
        found = [
            {
                "EventId": str(number),
                "LogicalResourceId": resource,
                "ResourceStatus": state,
                "ResourceStatusReason": reason,
            }
            for number, (resource, state, reason) in enumerate([*events, *later])
        ]
        self.events, self.later = found[: len(events)], found[len(events) :]

    def session(self):
        """A session that talks to this."""
        return SimpleNamespace(
            seat=SEAT, region="us-east-1", target="aws", client=lambda service: self
        )

    def describe_stacks(self, StackName):
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if state is None:
            error = {"Error": {"Code": "ValidationError", "Message": "x does not exist"}}
            raise ClientError(error, "DescribeStacks")
        stack = {"StackName": StackName, "StackId": f"id-{StackName}", "StackStatus": state}
        return {"Stacks": [stack | {"Tags": stacks.tags(SEAT)}]}

    def change(self, call):
        self.changes.append(call)
        self.events, self.later = self.events + self.later, []

    def create_stack(self, StackName, **request):
        self.change("create_stack")
        return {"StackId": f"id-{StackName}"}

    def update_stack(self, **request):
        self.change("update_stack")

    def delete_stack(self, StackName):
        self.change("delete_stack")

    def continue_update_rollback(self, StackName):
        self.change("continue_update_rollback")

    def get_template(self, StackName):
        return {"TemplateBody": self.template}

    def describe_stack_events(self, StackName):
        return {"StackEvents": self.events[::-1]}

    def get_paginator(self, _):
        return self

    def paginate(self, StackName):
        yield self.describe_stack_events(StackName)
