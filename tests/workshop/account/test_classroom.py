"""A class of a few seats on the emulator, by its commands; bills by Cost Explorer's model."""

import datetime
import re
from types import SimpleNamespace

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from seat_helpers import host, job, names_left

import workshop
from workshop.account import classroom, stacks
from workshop.account.prices import idle_price
from workshop.account.stacks import StackError
from workshop.jobs import quotas, vpc

SEATS = "ann,ann2,bob"


@pytest.fixture
def run(sagemaker_emulator, clean_aws_in_module, command):
    return command


def budget():
    """The budget of the class, in USD."""
    session = workshop.session("local", seat="class")
    return stacks.status(session, ("shared",))[0].parameters["BudgetUsd"]


def row(output, seat):
    """The cells of a seat's line in a table."""
    line = next(row for row in output.splitlines() if row.startswith(f"│ {seat} "))
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_a_class_is_made_listed_priced_and_cleaned(run):
    code, out = run("stacks", "up", "--seats", SEATS, "-p", "InstanceTypes=ml.m5.large")
    assert code == 0, out
    assert out.count(": created") == 1 + 3 * 3
    assert budget() == "30"
    assert "The class has 3 seats: ann, ann2, bob." in out
    assert re.search(
        r"instructor: arn:aws:iam::\d+:policy/workshop-class-shared-InstructorPolicy", out
    )
    code, out = run("stacks", "up", "--seats", "bob,chi")
    assert code == 0 and "The class has 4 seats: ann, ann2, bob, chi." in out, "nobody is left out"
    assert out.count(": created") == 3 and out.count(": no change") == 9
    assert budget() == "40", "it grows with the class"
    run("stacks", "up", "--seats", "bob", "-p", "BudgetUsd=55")
    run("stacks", "up", "--seats", "bob")
    assert budget() == "55", "unless somebody chose another"

    sessions = {name: workshop.session("local", seat=name) for name in ("ann", "bob", "chi")}
    networks = [vpc.network(each) for each in sessions.values()]
    assert len({each["subnets"][0] for each in networks}) == 3, "each in subnets of its own"
    ec2 = sessions["ann"].client("ec2")
    ids = [subnet for each in networks for subnet in each["subnets"]]
    subnets = ec2.describe_subnets(SubnetIds=ids)["Subnets"]
    assert len({subnet["VpcId"] for subnet in subnets}) == 1, "and all in one VPC"
    blocks = {subnet["CidrBlock"] for subnet in subnets}
    assert blocks == {"10.20.1.0/25", "10.20.3.0/25", "10.20.4.0/25"}, "numbers stay"
    roles = stacks.status(sessions["chi"], ("roles",))[0]
    assert roles.parameters["InstanceTypes"] == "ml.m5.large", "the limits of the class"

    code, out = run("stacks", "up", "network", "--seat", "ann")
    assert code == 1 and "A seat has one network" in out
    code, out = run("stacks", "status", "--seat", "ann")
    assert code == 0 and "workshop-ann-subnets" in out
    code, out = run("class", "status")
    assert code == 0 and "4 seats, 0 stacks that cannot be used." in out
    assert row(out, "ann2")[1] == "storage roles subnets"

    host(sessions["bob"], "x", stacks.tags("bob"))
    job(sessions["ann"], "done")
    code, out = run("class", "cost")
    usd = 2 * idle_price("endpoint ml.m5.large").usd
    assert code == 0
    assert row(out, "bob")[3] == f"{usd:.3f}" and "endpoints: workshop-bob-x" in out
    assert row(out, "ann")[1] == "1" and row(out, "ann2")[3] == "0.000"
    assert f"4 seats: 0.00 USD of training jobs, {usd:.3f} USD an hour now" in out

    code, out = run("class", "clean", "--yes")
    assert code == 0, out
    assert out.splitlines()[-1] == "Left: nothing, of 4 seats and of the class."
    for seat in (*sessions.values(), workshop.session("local", seat="class")):
        assert names_left(seat) == [], "asked of the services themselves"
    code, out = run("class", "status")
    assert code == 0 and "There is no class in us-east-1" in out


def test_a_seat_that_fails_does_not_stop_the_others_and_the_list_stays(run, monkeypatch):
    session = workshop.session("local", seat="class")
    deploy, clean = stacks.deploy, classroom.cleanup.clean

    def broken(seat, names, say, parameters):
        if seat.seat == "fay":
            raise StackError("The stack workshop-fay-storage: no.")
        return deploy(seat, names, say, parameters)

    def refused(seat, say):
        if seat.seat == "fay":
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "ListBuckets")
        return clean(seat, say)

    with monkeypatch.context() as patch:
        patch.setattr(stacks, "deploy", broken)
        with pytest.raises(StackError, match=r"1 seats failed(?s:.*)fay-storage"):
            classroom.up(session, ["fay", "gus"], log=lambda _: None)
    assert classroom.members(session) == ["fay", "gus"]
    usable = [row.name for row in classroom.status(session)["gus"] if row.usable]
    assert usable == [*classroom.PER_SEAT]
    assert classroom.up(session, ["fay"], log=lambda _: None) == ["fay", "gus"]
    with monkeypatch.context() as patch:
        patch.setattr(classroom.cleanup, "clean", refused)
        code, out = run("class", "clean", "--yes")
    assert code == 1
    assert "fay: could not be cleaned: ListBuckets: AccessDenied: no" in out
    assert "Something is left. 1 of 2 seats have nothing." in out
    code, out = run("class", "clean", "--yes")
    assert code == 0 and "of 2 seats and of the class" in out, "the list was still there"


def test_names():
    assert classroom.seat_names("3") == ["s01", "s02", "s03"]
    assert classroom.seat_names("ann, bob") == ["ann", "bob"]
    assert len(classroom.seat_names("100")) == 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seats", "0"], "0 seats; a class has 1 to 100"),
        (["--seats", "101"], "101 seats"),
        (["--seats", "ann,ann"], "named once"),
        (["--seats", "ann,Bob"], "'Bob'"),
        (["--seats", "class"], "not 'class'"),
        (["network", "--seats", "2"], "they share a network"),
        (["--seats", "2", "-p", "Number=3"], "Number cannot be given"),
        (["--seats", "2", "-p", "Nat=yes"], "no parameter 'Nat'"),
        (["--seats", "2", "-p", "Email=me"], "an e-mail address"),
        (["--seats", "2", "--target", "aws"], "-p Email=you@example.org"),
    ],
    ids=" ".join,
)
def test_wrong_use_is_exit_code_2_and_makes_nothing(run, arguments, message):
    code, out = run("stacks", "up", *arguments)
    assert code == 2 and message in out.replace("\n", " "), out
    assert "created" not in out


# What AWS bills


@pytest.fixture
def explorer():
    """A session whose Cost Explorer answers by its model."""
    client = boto3.Session("x", "x", region_name="us-east-1").client("ce")
    with Stubber(client) as stub:
        yield SimpleNamespace(client=lambda _: client), stub
        stub.assert_no_pending_responses()


def group(seat, usd):
    amount = {"Amount": usd, "Unit": "USD"}
    return {"Keys": [f"seat${seat}"], "Metrics": {"UnblendedCost": amount}}


def test_cost_explorer_tells_seats_apart(explorer):
    session, stub = explorer
    request = {
        "TimePeriod": {"Start": "2026-10-23", "End": "2026-11-23"},
        "Granularity": "MONTHLY",
        "Metrics": ["UnblendedCost"],
        "Filter": {"Tags": {"Key": "workshop", "Values": ["data-parallel"]}},
        "GroupBy": [{"Type": "TAG", "Key": "seat"}],
    }
    months = [{"Groups": [group("ann", "1.25"), group("bob", "0.5")]}, {"Groups": []}]
    stub.add_response(
        "get_cost_and_usage", {"ResultsByTime": months, "NextPageToken": "n"}, request
    )
    second_page = {"ResultsByTime": [{"Groups": [group("ann", "0.75")]}]}
    stub.add_response("get_cost_and_usage", second_page, request | {"NextPageToken": "n"})
    days = datetime.date(2026, 10, 23), datetime.date(2026, 11, 23)
    assert classroom.billed_usd(session, *days) == {"ann": 2.0, "bob": 0.5}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ({}, "are active"),
        ({"Errors": [{"TagKey": "seat", "Code": "x", "Message": "not found"}]}, "up to a day"),
        (None, "Billing and Cost Management"),
    ],
)
def test_tags_are_activated_or_it_is_said_what_to_do(explorer, answer, says):
    session, stub = explorer
    operation = "update_cost_allocation_tags_status"
    if answer is None:
        stub.add_client_error(operation, "AccessDeniedException", "not the payer")
    else:
        active = [{"TagKey": key, "Status": "Active"} for key in ("workshop", "seat")]
        stub.add_response(operation, answer, {"CostAllocationTagsStatus": active})
    assert says in classroom.activate_tags(session)


# Quotas


def test_quotas_are_those_of_all_seats_at_once():
    seat, twenty = quotas.needed(1), quotas.needed(20, notebooks=True)
    assert all(twenty[name] == 20 * count for name, count in seat.items())
    assert twenty["ml.m5.xlarge for notebook instance usage"] == 20
    assert seat["Number of instances across all training jobs"] == 5
    assert seat["ml.m5.large for endpoint usage"] == 1


def test_the_request_asks_only_for_what_is_lacking(run):
    needs = {"a for training job usage": 40, "b for endpoint usage": 20}
    text = quotas.request(needs, 20, "eu-west-1", {"a for training job usage": 15})
    assert "- a for training job usage: please raise to 40 (now 15)" in text
    assert "- b for endpoint usage: please raise to 20" in text
    have = {"a for training job usage": 40, "b for endpoint usage": 20.0}
    assert "large enough for 20 seats" in quotas.request(needs, 20, "eu-west-1", have)
    code, out = run("class", "quotas", "20", "--region", "eu-west-1")
    assert code == 0 and "Region: eu-west-1." in out and "20 learners" in out
