"""Whatever is refused, and wherever a run is broken off: a later run finishes."""

import pytest
from botocore.exceptions import ClientError
from seat_helpers import Calls, furnish, host, job, names_left, quiet

import workshop
from workshop.account import cleanup, stacks
from workshop.account.resources import TYPES, Account

# The changing operations of a run over a seat with all kinds of things, in their order, those
# together that do not wait for each other. A test compares them with the calls that are made.
TOGETHER = [
    (
        "TagResource",
        "DeleteEndpoint",
        "DeleteEndpointConfig",
        "DeleteModel",
        "DeleteRepository",
        "DeleteLogGroup",
        "DeleteLogStream",
    ),
    ("DeleteTrainingJob", "DeleteObjects"),
    ("AbortMultipartUpload", "DeleteStack"),
]
CHANGING = [operation for group in TOGETHER for operation in group]
# What is not known when a look is refused: operation -> kind, or whose cost.
LOOKS = {
    "ListTrainingJobs": "records of training jobs",
    "ListTags": "models",
    "DescribeLogStreams": "log streams of training jobs",
    "ListBuckets": "objects",
    "ListObjectVersions": "objects",
    "DescribeStacks": "stacks",
    "ListStacks": "log streams of the notebook instance",
}
COSTS = {
    "DescribeEndpointConfig": "endpoints",
    "DescribeImages": "image repositories",
    "DescribeNotebookInstance": "stacks",
}


def look(session, kind):
    """What a look at one kind tells: the seat's, and what is not proved to be anybody's."""
    (each,) = [each for each in TYPES if each.kind == kind]
    return cleanup.look(Account(session), each)


def test_no_step_is_missing_and_each_can_be_refused(session):
    """All that changes something is refused, then one step after the other is allowed."""
    furnish(session)
    calls = Calls(session)
    for operation in CHANGING:
        calls.refuse(operation, times=999)
    before = set(names_left(session))
    for group in TOGETHER:
        report = cleanup.clean(session, quiet)
        text = "\n".join(report.lines())
        for operation in group:
            # A log that cannot be claimed does not hold its endpoint back.
            assert f"no {operation} for you" in text or operation == "TagResource", text
            calls.refused[operation] = 0
        assert not report.nothing_left and "Left: nothing." not in text
        assert set(names_left(session)) <= before
    assert cleanup.clean(session, quiet).nothing_left
    assert names_left(session) == []
    assert sorted(set(calls.writes)) == sorted(CHANGING)


def test_a_run_can_be_broken_off_at_every_step(session):
    """Each run is interrupted at one step later than the one before it."""
    furnish(session)
    calls = Calls(session)
    for operation in CHANGING:
        calls.refuse(operation, error="KeyboardInterrupt")
        with pytest.raises(KeyboardInterrupt):
            cleanup.clean(session, quiet)
        assert names_left(session), f"nothing is left, but {operation} was never called"
    assert cleanup.clean(session, quiet).nothing_left
    assert names_left(session) == []


@pytest.fixture(scope="module")
def calls(furnished):
    """The calls of a session of the furnished seat."""
    return Calls(workshop.session("local", seat=furnished.seat))


@pytest.mark.parametrize("operation", LOOKS)
def test_a_look_that_is_refused_is_an_error_and_not_nothing(calls, operation):
    calls.refused.clear()
    calls.refuse(operation, times=99)
    with pytest.raises(ClientError, match=f"no {operation} for you"):
        look(calls.session, LOOKS[operation])


@pytest.mark.parametrize("operation", COSTS)
def test_who_may_not_ask_for_a_price_may_still_delete(calls, operation):
    calls.refused.clear()
    calls.refuse(operation, times=99)
    owned, _ = look(calls.session, COSTS[operation])
    dear = [row for row in owned if row.usd_per_month is None]
    assert [f"no {operation} for you" in row.note for row in dear] == [True]


def test_who_may_not_look_is_not_told_that_nothing_is_left(session):
    host(session, "a", stacks.tags(session.seat))
    calls = Calls(session)
    calls.refuse("ListEndpoints", times=99)
    lines = []
    report = cleanup.clean(session, lines.append)
    assert not report.nothing_left and report.left.by_kind("endpoints") == []
    reason = "ListEndpoints: AccessDeniedException: no ListEndpoints for you"
    assert f"Left: endpoints: nobody knows: {reason}" in report.lines()
    assert f"endpoints: could not be looked at: {reason}" in lines
    # The others went on. The log could not, as only the endpoint tells whose it is.
    assert {row.kind for row in report.done} == {"endpoint configurations", "models"}
    calls.refused.clear()
    assert cleanup.clean(session, quiet).nothing_left and names_left(session) == []


def test_a_record_stays_as_long_as_its_log(session):
    full = job(session, "done")
    calls = Calls(session)
    calls.refuse("DeleteLogStream")
    report = cleanup.clean(session, quiet)
    reason = report.refused["records of training jobs", full]
    assert reason == "its log is still there, and only this record tells whose it is"
    assert cleanup.clean(session, quiet).nothing_left and names_left(session) == []


def test_an_endpoint_goes_even_if_its_log_cannot_be_claimed(session):
    """It costs more than a log that stays."""
    host(session, "a", stacks.tags(session.seat))
    calls = Calls(session)
    calls.refuse("TagResource")
    report = cleanup.clean(session, quiet)
    assert report.nothing_left
    assert [row.note for row in report.left.foreign] == ["not tagged as this seat's"]
