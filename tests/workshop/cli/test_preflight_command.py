"""`workshop preflight`: a table, what to do, and its exit status. It makes nothing."""

import functools
import re

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from workshop.account import stacks
from workshop.jobs import lesson_jobs


@pytest.fixture
def preflight(clean_aws, command):
    """Runs `workshop preflight ...` without this machine's credentials; exit status and output."""
    return functools.partial(command, "preflight")


@pytest.fixture
def calls(monkeypatch):
    """Credentials that look right, and AWS that refuses every call with `calls.code`."""

    class Calls(list):
        code = "ExpiredToken"

    made = Calls()

    def refuse(_, operation, __):
        made.append(operation)
        raise ClientError({"Error": {"Code": made.code, "Message": "no"}}, operation)

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(BaseClient, "_make_api_call", refuse)
    return made


@pytest.mark.parametrize(
    ("given", "status", "texts"),
    [
        (["04"], 0, ["OK  job           In ", "us-east-1: mpi starts the script.", "At most"]),
        (
            ["04", "-p", "processes_per_host=8"],
            2,
            ["NO  processes     processes_per_host is 8", "do: Give"],
        ),
    ],
)
def test_a_lesson_offline(preflight, given, status, texts):
    actual, output = preflight("--offline", *given)
    assert actual == status, output
    assert all(text in output for text in texts), output


@pytest.mark.parametrize(
    ("region", "text"),
    [("us-east-1", "AWS credentials are missing"), ("", "No AWS region is set")],
)
def test_without_credentials_or_region_one_line_and_status_2(preflight, monkeypatch, region, text):
    if region:
        monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    status, output = preflight("05")
    assert status == 2 and output.count("\n") == 1 and text in output


def test_with_expired_credentials_one_line_status_2_and_no_further_call(preflight, calls):
    status, output = preflight("00")
    assert status == 2
    assert output.count("\n") == 1 and "Your AWS sign-in has expired" in output
    assert calls == ["GetCallerIdentity"]


def test_a_lesson_is_checked_job_by_job(preflight):
    status, output = preflight("05", "--offline")
    assert status == 0, output
    jobs = [line for line in output.splitlines() if line and not line.startswith(" ")]
    total = re.search(r"All 7 jobs together: at most (\d+\.\d\d) USD\.", jobs.pop())
    # 13 instances, each for max_run and 120 s more to save; rounded up.
    assert total and 0 <= float(total[1]) - 13 * 1020 / 3600 * 0.204 < 0.01
    measured = ["1 x 2", "2 x 1", "2 x 1 again", "2 x 2", "2 x 2 in a VPC"]
    trained = ["2 x 2", "2 x 1 MultiWorker"]
    expected = [*(f"measure {name}" for name in measured), *trained]
    assert [line.split(":")[0] for line in jobs] == expected


def test_a_network_is_looked_for_where_it_should_be(preflight, session):
    """The seat's own, or what is given."""
    once = ["--target=local", "--seat=tests", "05"]
    status, output = preflight(*once)
    assert status == 0, output
    assert "?   network       Could not be checked: the seat has no network stack" in output
    assert "?   quota         Could not be checked: List" in output
    *_, made = stacks.deploy(session, ("storage", "roles", "network"), log=lambda _: None)
    status, output = preflight(*once)
    stacks.delete(session, ("network",), log=lambda _: None)
    assert status == 0 and "the seat has no network stack" not in output, output
    assert "free addresses in us-east-1" in output
    gone = {"subnets": "SubnetId", "security_group_ids": "SecurityGroupId"}
    given = [f"-p{name}=[{made.outputs[output]}]" for name, output in gone.items()]
    status, output = preflight(*once, *given)
    assert status == 2 and "NO  network" in output and "does not exist" in output


def test_a_lesson_without_a_job(preflight, monkeypatch):
    monkeypatch.delitem(lesson_jobs.JOBS, "02")
    status, output = preflight("02", "--offline")
    assert status == 2 and "Lesson 02 starts no job" in output
