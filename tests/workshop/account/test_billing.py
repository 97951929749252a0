"""What is billed by the hour is ended if it is this run's."""

import datetime

from seat_helpers import host, names_left

from workshop.account import cleanup, stacks


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
    cleanup.end_what_runs(session, long_ago(), lines.append)
    assert lines == [f"endpoints: {name}: deleted"]


def test_another_seats_endpoint_is_not_ended(session):
    host(session, "theirs", [{"Key": "workshop", "Value": "data-parallel"}])  # and no seat
    cleanup.end_what_runs(session, long_ago(), quiet)
    assert f"{session.job_prefix}theirs" in names_left(session)
