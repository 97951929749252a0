"""Stacks in every state that CloudFormation can leave one in: what `deploy` and `delete` do."""

from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError
from stacks_harness import REGION, shared

from workshop.account import stacks

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
        client = shared().client("cloudformation")
        client._make_api_call = self.answer
        return SimpleNamespace(seat=SEAT, region=REGION, target="aws", client=lambda _: client)

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
        return {"Stacks": [stack | {"Tags": stacks.tags(SEAT)}]}

    def describe_events(self, request):
        events = [
            {
                "LogicalResourceId": resource,
                "PhysicalResourceId": request["StackName"] if resource == "me" else resource,
                "ResourceStatus": state,
                "ResourceStatusReason": reason,
            }
            for resource, state, reason in self.events
        ]
        return {"StackEvents": events[::-1]}


BODY = stacks.template("storage")


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(stacks, "WAIT", {"Delay": 0, "MaxAttempts": 5})


def up(fake, **options):
    (done,) = stacks.deploy(fake.session(), ("storage",), lambda _: None, **options)
    return done.change


def down(fake):
    return stacks.delete(fake.session(), ("network",), lambda _: None)


def test_a_failed_creation_tells_the_cause():
    events = [("Vpc", "CREATE_FAILED", "The maximum number of VPCs has been reached")]
    events.append(("TrainingSubnet", "CREATE_FAILED", "Resource creation cancelled"))
    fake = FakeCloudFormation(None, "CREATE_IN_PROGRESS", "ROLLBACK_COMPLETE", events=events)
    with pytest.raises(stacks.StackError, match=r"ROLLBACK_COMPLETE\. Vpc: The maximum"):
        up(fake)


@pytest.mark.parametrize(
    "state",
    [
        "ROLLBACK_COMPLETE",
        "ROLLBACK_FAILED",
        "CREATE_FAILED",
        "DELETE_FAILED",
        "REVIEW_IN_PROGRESS",
    ],
)
def test_what_a_failure_left_is_deleted_first(state):
    fake = FakeCloudFormation(state, None, "CREATE_COMPLETE")
    assert up(fake) == "created"
    assert fake.changes == ["DeleteStack", "CreateStack"]


def test_a_creation_under_way_is_waited_for():
    fake = FakeCloudFormation(
        "CREATE_IN_PROGRESS", "CREATE_IN_PROGRESS", "CREATE_COMPLETE", template=BODY
    )
    assert up(fake) == "no change"
    assert fake.changes == []


@pytest.mark.parametrize(
    "state", ["UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE"]
)
def test_an_older_template_is_updated(state):
    fake = FakeCloudFormation(state, "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE", template="older")
    assert up(fake) == "updated"
    assert fake.changes == ["UpdateStack"]


def test_an_update_that_could_not_roll_back_goes_on_rolling_back_first():
    fake = FakeCloudFormation(
        "UPDATE_ROLLBACK_FAILED",
        "UPDATE_ROLLBACK_IN_PROGRESS",
        "UPDATE_ROLLBACK_COMPLETE",
        "UPDATE_ROLLBACK_COMPLETE",
        "UPDATE_IN_PROGRESS",
        "UPDATE_COMPLETE",
        template="older",
    )
    assert up(fake) == "updated"
    assert fake.changes == ["ContinueUpdateRollback", "UpdateStack"]


def test_a_failed_update_tells_its_own_cause_and_no_older_one():
    events = [("Old", "UPDATE_FAILED", "long ago"), ("me", "UPDATE_ROLLBACK_COMPLETE", "")]
    new = [("me", "UPDATE_IN_PROGRESS", ""), ("Nat", "UPDATE_FAILED", "No address left")]
    fake = FakeCloudFormation(
        "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", events=events, later=new, template="older"
    )
    with pytest.raises(stacks.StackError, match="Nat: No address left"):
        up(fake)


def test_a_stack_that_never_ends_is_given_up():
    with pytest.raises(stacks.StackError, match="still CREATE_IN_PROGRESS"):
        up(FakeCloudFormation("CREATE_IN_PROGRESS"))


def found_alone(state):
    """The states of all stacks that a seat can have, as they are looked at: only a network."""
    return [state if name == "network" else None for name in stacks.in_order(stacks.ALL)]


@pytest.mark.parametrize("state", ["CREATE_COMPLETE", "DELETE_FAILED", "ROLLBACK_COMPLETE"])
def test_down_deletes_from_any_state_and_waits(state):
    fake = FakeCloudFormation(*found_alone(state), state, "DELETE_IN_PROGRESS", None)
    assert down(fake) == ["workshop-me-network"]
    assert fake.changes == ["DeleteStack"]


IN_USE = ("TrainingSubnet", "DELETE_FAILED", "has dependencies and cannot be deleted")


def deletion(*after, reason=IN_USE):
    """A network stack, and its states after a deletion: DELETE_FAILED, or None where it is gone."""
    states = [*found_alone("CREATE_COMPLETE"), "CREATE_COMPLETE", *after]
    return FakeCloudFormation(*states, events=[("me", "CREATE_COMPLETE", "")], later=[reason])


def test_a_failed_deletion_tells_the_cause():
    fake = deletion("DELETE_FAILED", reason=("S3Endpoint", "DELETE_FAILED", "not allowed"))
    with pytest.raises(stacks.StackError, match="S3Endpoint: not allowed"):
        down(fake)
    assert fake.changes == ["DeleteStack"]


def test_what_is_still_in_use_is_deleted_once_it_is_free(monkeypatch):
    """SageMaker removes a job's network interfaces minutes after its end."""
    slept = []
    monkeypatch.setattr(stacks.time, "sleep", slept.append)
    fake = deletion("DELETE_FAILED", "DELETE_FAILED", None)
    assert down(fake) == ["workshop-me-network"]
    assert fake.changes == ["DeleteStack"] * 3 and slept == [stacks.PAUSE_SECONDS] * 2


def test_what_stays_in_use_is_told(monkeypatch):
    monkeypatch.setattr(stacks.time, "sleep", lambda _: None)
    fake = deletion("DELETE_FAILED")
    with pytest.raises(stacks.StackError, match="TrainingSubnet: has dependencies"):
        down(fake)
    assert len(fake.changes) == stacks.TRIES


def test_down_waits_for_what_is_under_way_before_it_deletes():
    states = [None, None, "UPDATE_IN_PROGRESS", None, "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE", None]
    fake = FakeCloudFormation(*states)
    assert down(fake) == ["workshop-me-network"]
