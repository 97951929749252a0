"""CloudFormation in the states that moto never reaches."""

from types import SimpleNamespace

import boto3
from botocore.exceptions import ClientError

from workshop.jobs import seat

SEAT = "me"
CHANGES = ("CreateStack", "UpdateStack", "DeleteStack", "ContinueUpdateRollback")


class FakeCloudFormation:
    """Answers a boto3 client with given states, and notes what it is told to change.

    states: StackStatus of each coming DescribeStacks, the last one for ever; None: no such stack.
    events: (resource, state, reason), oldest first; "me" is the stack. later: those after the
    first change.
    """

    def __init__(self, *states, events=(), later=(), template=""):
        self.states, self.changes, self.template = list(states), [], template
        self.events, self.later = list(events), list(later)

    def session(self):
        """A session whose client is answered by this. Its waiters are botocore's own."""
        client = boto3.Session("test", "test", region_name="us-east-1").client("cloudformation")
        client._make_api_call = self.answer
        return SimpleNamespace(
            seat=SEAT, region="us-east-1", target="aws", client=lambda service: client
        )

    def answer(self, operation, request):
        if operation in CHANGES:
            self.changes.append(operation)
            self.events, self.later = self.events + self.later, []
        answers = {
            "DescribeStacks": self.describe,
            "DescribeStackEvents": self.describe_events,
            "GetTemplate": lambda request: {"TemplateBody": self.template},
        }
        return answers.get(operation, lambda request: {})(request)

    def describe(self, request):
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        name = request["StackName"]
        if state is None:
            error = {"Error": {"Code": "ValidationError", "Message": f"{name} does not exist"}}
            raise ClientError(error, "DescribeStacks")
        stack = {"StackName": name, "StackId": f"id-{name}", "StackStatus": state}
        return {"Stacks": [stack | {"Tags": seat.tags(SEAT)}]}

    def describe_events(self, request):
        found = [
            {
                "LogicalResourceId": resource,
                "PhysicalResourceId": request["StackName"] if resource == "me" else resource,
                "ResourceStatus": state,
                "ResourceStatusReason": reason,
            }
            for resource, state, reason in self.events
        ]
        return {"StackEvents": found[::-1]}
