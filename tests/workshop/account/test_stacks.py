"""Stacks: made, left alone, changed, deleted; finished where the connection was lost."""

import itertools
import shutil

import pytest
import stacks_harness
from botocore.exceptions import ClientError
from stacks_harness import Fault

from workshop.account import stacks
from workshop.paths import CLOUDFORMATION

SEATS = itertools.count()
BEFORE, AFTER = "before-call", "after-call"  # the call did not get there; its answer is lost


@pytest.fixture(scope="module", autouse=True)
def in_process():
    """Everything here on moto in this process; the kit is a few bytes."""
    with pytest.MonkeyPatch.context() as patch, stacks_harness.aws(patch):
        patch.setattr(stacks, "_packed", lambda: b"kit")
        yield


@pytest.fixture
def session():
    """Of a seat of the test's own."""
    return stacks_harness.session(f"s{next(SEATS)}")


def deploy(session, names=stacks.STACKS):
    return {
        row.name.split("-")[-1]: row for row in stacks.deploy(session, names, log=lambda _: None)
    }


def delete(session, names=stacks.ALL):
    return stacks.delete(session, names, log=lambda _: None)


def test_a_changed_template_updates_and_keeps_the_bucket(session, tmp_path, monkeypatch):
    before = deploy(session)
    copies = tmp_path / "templates"
    shutil.copytree(CLOUDFORMATION, copies)
    storage = copies / "storage.yaml"
    storage.write_text(storage.read_text().replace("Value: data-parallel", "Value: changed"))
    monkeypatch.setattr(stacks, "CLOUDFORMATION", copies)
    after = deploy(session)
    assert after["storage"].change == "updated" and after["roles"].change == "no change"
    assert after["storage"].outputs["BucketName"] == before["storage"].outputs["BucketName"]


def test_deleted_stacks_are_gone_and_a_second_time_is_quiet(session):
    bucket = deploy(session)["storage"].outputs["BucketName"]
    assert delete(session) == [f"{session.job_prefix}{name}" for name in ("roles", "storage")]
    with pytest.raises(stacks.MissingStack, match="Run lesson 00"):
        stacks.outputs(session)
    with pytest.raises(ClientError):
        session.client("s3").head_bucket(Bucket=bucket)
    assert delete(session) == []
    assert {row.state for row in stacks.status(session)} == {"not there"}


def test_a_bucket_that_is_not_empty_keeps_every_stack(session):
    bucket = deploy(session)["storage"].outputs["BucketName"]
    session.client("s3").put_object(Bucket=bucket, Key="data/x", Body=b"1")
    with pytest.raises(stacks.StackError, match=r"not empty.*workshop clean"):
        delete(session)
    assert [row.usable for row in stacks.status(session, stacks.STACKS)] == [True, True]


def test_a_stack_that_another_one_needs_is_not_deleted(session):
    deploy(session)
    with pytest.raises(stacks.StackError, match=r"-roles uses its outputs"):
        delete(session, ["storage"])
    assert stacks.outputs(session)["BucketName"]


def test_a_stack_that_is_not_the_kits_is_left_alone(session):
    client, name = session.client("cloudformation"), f"{session.job_prefix}storage"
    client.create_stack(StackName=name, TemplateBody=stacks.template("storage"))
    for act in (deploy, delete):
        with pytest.raises(stacks.StackError, match="this kit did not make it"):
            act(session, ("storage",))
    stack = client.describe_stacks(StackName=name)["Stacks"][0]
    assert stack["StackStatus"] == "CREATE_COMPLETE" and not stack["Tags"]
    (row,) = stacks.status(session, ("storage",))
    assert not row.usable and "did not make it" in row.reason


# The connection is lost


def strike(act, when):
    """Run act(seat, fault) with the fault at every call in turn. Yields a session of the seat."""
    hit = set()
    for number in itertools.count(1):
        seat, fault = f"{when.split('-')[0]}{act.__name__}{number}", Fault(number, when)
        try:
            act(seat, fault)
        except stacks.StackError as error:
            assert fault.struck and "run the same again" in str(error)
            hit.add(fault.struck)
            yield stacks_harness.session(seat)
        else:
            assert not fault.struck, f"the loss of {fault.struck} went unnoticed"
            assert "DescribeStacks" in hit and hit & {"CreateStack", "DeleteStack"}
            return


@pytest.mark.parametrize(
    ("names", "when"), [(stacks.STACKS, BEFORE), (("network",), BEFORE), (("notebook",), AFTER)]
)
def test_a_lost_call_of_up_is_made_good_by_the_next_run(names, when):
    def up(seat, fault):
        if names != stacks.STACKS:
            deploy(stacks_harness.session(seat))
        deploy(stacks_harness.session(seat, fault), names)

    for session in strike(up, when):
        assert list(deploy(session, names)) == list(names)
        assert all(row.usable for row in stacks.status(session, names))
