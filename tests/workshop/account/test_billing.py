"""What is billed by the hour: ended if it is this run's, and named with its price if it stays."""

import datetime

import pytest
from seat_helpers import Calls, host, names_left, notebook

import workshop
from workshop.account import cleanup, stacks
from workshop.account.prices import idle_price


def long_ago():
    return datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)


def quiet(_):
    pass


def test_what_was_made_since_is_ended_and_what_was_there_stays(session):
    host(session, "made", stacks.tags(session.seat))
    name = f"{session.job_prefix}made"
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=1)
    lines = []
    cleanup.end_what_runs(session, later, lines.append)
    assert lines == [] and name in names_left(session), "it is older than that"
    (line, command) = cleanup.still_billed(session)
    usd = 2 * idle_price("endpoint ml.m5.large").usd
    assert line == f"STILL BILLED: endpoints: {name}: {usd:.3f} USD an hour"
    assert command == (f"To remove all of it: workshop clean --seat {session.seat} --target local")
    cleanup.end_what_runs(session, long_ago(), lines.append)
    assert lines == [f"endpoints: {name}: deleted"]
    assert cleanup.still_billed(session) == []


def test_another_seats_endpoint_is_not_ended(session):
    host(session, "theirs", [{"Key": "workshop", "Value": "data-parallel"}])  # and no seat
    cleanup.end_what_runs(session, long_ago(), quiet)
    assert f"{session.job_prefix}theirs" in names_left(session)


def test_stacks_that_cost_are_named_and_not_deleted(session):
    both = {"Nat": "yes", "InterfaceEndpoints": "yes"}
    workshop.deploy(session, ("storage", "roles", "network"), log=quiet, parameters=both)
    notebook(session)
    cleanup.end_what_runs(session, long_ago(), quiet)
    lines = cleanup.still_billed(session)
    hourly = idle_price("nat-gateway").usd + idle_price("public-ipv4").usd
    hourly += 6 * idle_price("interface-endpoint").usd  # the gateway endpoint to S3 is free
    notes = [row.note for row in cleanup.find(session).by_kind("stacks")]
    assert any("6 x interface-endpoint" in note for note in notes)
    seat = session.seat
    assert f"STILL BILLED: workshop-{seat}-network: {hourly:.3f} USD an hour" in lines
    hourly = idle_price("notebook ml.t3.medium").usd
    assert f"STILL BILLED: workshop-{seat}-notebook: {hourly:.3f} USD an hour" in lines
    assert len(lines) == 3


def test_an_endpoint_is_deleted_though_its_log_may_not_be_looked_at(session):
    """A learner's role knows nothing of log groups. An endpoint that stays costs more."""
    host(session, "made", stacks.tags(session.seat))
    Calls(session).refuse("DescribeLogGroups", times=9)
    cleanup.end_what_runs(session, long_ago(), quiet)
    assert cleanup.still_billed(session) == []


@pytest.mark.parametrize("operation", ["ListEndpoints", "DescribeEndpointConfig"])
def test_what_may_not_be_asked_is_said(session, operation):
    host(session, "made", stacks.tags(session.seat))
    Calls(session).refuse(operation, times=9)
    (line, _) = cleanup.still_billed(session)
    assert line.startswith("STILL BILLED") and "endpoints" in line
    assert "could not be looked at" in line or "price not known here" in line
