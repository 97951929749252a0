"""The connection is lost at any call of `deploy` or `delete`: a second run finishes the work."""

import itertools

import boto3
import pytest
import stacks_harness
from stacks_harness import Fault

from workshop.account import notebook_instance, stacks

BEFORE, AFTER = "before-call", "after-call"  # the call did not get there; its answer is lost


def quiet(_):
    """Progress that nobody reads."""


@pytest.fixture(autouse=True)
def in_process(monkeypatch):
    """Everything here on moto in this process; the kit is a few bytes."""
    monkeypatch.setattr(notebook_instance, "_packed", lambda: b"kit")
    with stacks_harness.aws(monkeypatch):
        yield


def seats():
    """A fresh seat for each attempt."""
    return (f"seat-{number}" for number in itertools.count(1))


def all_usable(seat, names):
    return all(row.usable for row in stacks.status(stacks_harness.session(seat), names))


def strike(act, when):
    """Run act(seat, fault) with the fault at every call in turn. Yields seat and the call hit."""
    for number, seat in zip(itertools.count(1), seats(), strict=False):
        fault = Fault(number, when)
        try:
            act(seat, fault)
        except stacks.StackError as error:
            assert fault.struck and "run the same again" in str(error)
            yield seat, fault.struck
        else:
            assert not fault.struck, f"the loss of {fault.struck} went unnoticed"
            return


@pytest.mark.parametrize(
    "names, when",
    [
        (("storage", "roles"), BEFORE),
        (("storage", "roles"), AFTER),
        (("network",), BEFORE),
        (("notebook",), AFTER),
    ],
)
def test_a_lost_call_of_up_is_made_good_by_the_next_run(names, when):
    def up(seat, fault):
        if names != stacks.STACKS:
            stacks.deploy(stacks_harness.session(seat), say=quiet)
        stacks.deploy(stacks_harness.session(seat, fault), names, quiet)

    hit = set()
    for seat, call in strike(up, when):
        hit.add(call)
        plain = stacks_harness.session(seat)
        done = stacks.deploy(plain, names, quiet)
        assert all_usable(seat, names), f"after {call}"
        assert [one.name for one in done] == [f"workshop-{seat}-{name}" for name in names]
    assert {"CreateStack", "DescribeStacks"} <= hit


@pytest.mark.parametrize("names, when", [(("storage", "roles"), AFTER), (("network",), BEFORE)])
def test_a_lost_call_of_down_is_made_good_by_the_next_run(names, when):
    def down(seat, fault):
        stacks.deploy(stacks_harness.session(seat), (*stacks.STACKS, *names), quiet)
        stacks.delete(stacks_harness.session(seat, fault), names, quiet)

    hit = set()
    for seat, call in strike(down, when):
        hit.add(call)
        stacks.delete(stacks_harness.session(seat), names, quiet)
        stacks.delete(stacks_harness.session(seat), say=quiet)
        assert nothing_of(seat), f"after {call}"
    assert {"DeleteStack", "DescribeStacks"} <= hit


def nothing_of(seat):
    """Whether stacks, bucket, roles and VPC of a seat are gone."""
    rows = stacks.status(stacks_harness.session(seat))
    buckets = [one["Name"] for one in boto3.client("s3").list_buckets()["Buckets"]]
    roles = [one["RoleName"] for one in boto3.client("iam").list_roles()["Roles"]]
    mine = [{"Name": "tag:seat", "Values": [seat]}]
    ec2 = boto3.client("ec2", region_name=stacks_harness.REGION)
    return (
        {row.state for row in rows} == {"not there"}
        and not [name for name in buckets + roles if f"-{seat}-" in name]
        and not ec2.describe_vpcs(Filters=mine)["Vpcs"]
    )
