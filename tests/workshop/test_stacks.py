"""Stacks: made, left alone, changed; failures with CloudFormation's own reason."""

import shutil

import pytest
from botocore.exceptions import ClientError

import workshop
from workshop.account import stacks
from workshop.jobs import seat
from workshop.paths import CLOUDFORMATION


def deploy(session):
    return {one.name: one for one in workshop.deploy(session, say=lambda _: None)}


def test_a_second_deploy_changes_nothing(own_endpoint, clean_aws):
    session = workshop.session("local", seat="twice")
    first, second = deploy(session), deploy(session)
    assert {one.change for one in first.values()} == {"created"}
    assert {one.change for one in second.values()} == {"no change"}
    assert first["workshop-twice-storage"].outputs == second["workshop-twice-storage"].outputs


def test_a_changed_template_updates_and_keeps_the_bucket(
    own_endpoint, clean_aws, tmp_path, monkeypatch
):
    session = workshop.session("local", seat="change")
    before = deploy(session)
    copies = tmp_path / "templates"
    shutil.copytree(CLOUDFORMATION, copies)
    storage = copies / "storage.yaml"
    storage.write_text(storage.read_text().replace("Value: data-parallel", "Value: changed"))
    monkeypatch.setattr(seat, "CLOUDFORMATION", copies)
    after = deploy(session)
    assert after["workshop-change-storage"].change == "updated"
    assert after["workshop-change-roles"].change == "no change"
    name = before["workshop-change-storage"].outputs["BucketName"]
    assert after["workshop-change-storage"].outputs["BucketName"] == name


def test_deleted_stacks_are_gone_and_a_second_time_is_quiet(own_endpoint, clean_aws):
    session = workshop.session("local", seat="delete")
    bucket = deploy(session)["workshop-delete-storage"].outputs["BucketName"]
    gone = stacks.delete(session, say=lambda _: None)
    assert gone == ["workshop-delete-roles", "workshop-delete-storage"]
    with pytest.raises(stacks.MissingStack, match="Run lesson 00"):
        stacks.outputs(session)
    with pytest.raises(ClientError):
        session.client("s3").head_bucket(Bucket=bucket)
    assert stacks.delete(session, say=lambda _: None) == []
    assert {row.state for row in stacks.status(session)} == {"not there"}


def test_a_bucket_that_is_not_empty_keeps_every_stack(own_endpoint, clean_aws):
    session = workshop.session("local", seat="full")
    bucket = deploy(session)["workshop-full-storage"].outputs["BucketName"]
    session.client("s3").put_object(Bucket=bucket, Key="data/x", Body=b"1")
    with pytest.raises(stacks.StackError, match=r"not empty.*workshop clean"):
        stacks.delete(session, say=lambda _: None)
    assert [row.usable for row in stacks.status(session, stacks.STACKS)] == [True, True]


def test_a_stack_that_another_one_needs_is_not_deleted(own_endpoint, clean_aws):
    session = workshop.session("local", seat="needed")
    deploy(session)
    with pytest.raises(stacks.StackError, match="workshop-needed-roles uses its outputs"):
        stacks.delete(session, ["storage"], say=lambda _: None)
    assert stacks.outputs(session)["BucketName"]


def test_a_stack_that_is_not_the_kits_is_left_alone(own_endpoint, clean_aws):
    session = workshop.session("local", seat="foreign")
    client = session.client("cloudformation")
    body = (CLOUDFORMATION / "storage.yaml").read_text()
    client.create_stack(StackName="workshop-foreign-storage", TemplateBody=body)
    for act in (stacks.deploy, stacks.delete):
        with pytest.raises(stacks.StackError, match="this kit did not make it"):
            act(session, ("storage",), say=lambda _: None)
    found = client.describe_stacks(StackName="workshop-foreign-storage")["Stacks"][0]
    assert found["StackStatus"] == "CREATE_COMPLETE" and not found["Tags"]
    (row,) = stacks.status(session, ("storage",))
    assert not row.usable and "did not make it" in row.reason
