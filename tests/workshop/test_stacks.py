"""Stacks: made, left alone, changed; failures with CloudFormation's own reason."""

import shutil

import pytest
from botocore.exceptions import ClientError

import workshop
from workshop import stacks
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
    monkeypatch.setattr(stacks, "CLOUDFORMATION", copies)
    after = deploy(session)
    assert after["workshop-change-storage"].change == "updated"
    assert after["workshop-change-roles"].change == "no change"
    name = before["workshop-change-storage"].outputs["BucketName"]
    assert after["workshop-change-storage"].outputs["BucketName"] == name


def test_the_stacks_can_be_deleted(own_endpoint, clean_aws):
    session = workshop.session("local", seat="delete")
    bucket = deploy(session)["workshop-delete-storage"].outputs["BucketName"]
    for name in reversed(stacks.STACKS):
        session.client("cloudformation").delete_stack(StackName=f"workshop-delete-{name}")
    with pytest.raises(stacks.MissingStack, match="Run lesson 00"):
        stacks.outputs(session)
    with pytest.raises(ClientError):
        session.client("s3").head_bucket(Bucket=bucket)


class FakeCloudFormation:
    """CloudFormation at the moment when a creation fails, which moto never does.

    states: StackStatus of each coming describe_stacks; None: no such stack.
    """

    def __init__(self, *states):
        self.states, self.calls = list(states), []

    def describe_stacks(self, StackName):
        state = self.states.pop(0)
        if state is None:
            error = {"Error": {"Code": "ValidationError", "Message": "x does not exist"}}
            raise ClientError(error, "DescribeStacks")
        return {"Stacks": [{"StackStatus": state}]}

    def create_stack(self, **request):
        self.calls.append("create")

    def delete_stack(self, **request):
        self.calls.append("delete")

    def get_paginator(self, _):
        return self

    def paginate(self, StackName):
        later = {"LogicalResourceId": "Role", "ResourceStatus": "CREATE_FAILED"}
        first = {"LogicalResourceId": "Bucket", "ResourceStatus": "CREATE_FAILED"}
        yield {
            "StackEvents": [
                later | {"ResourceStatusReason": "Resource creation cancelled"},
                first | {"ResourceStatusReason": "Access Denied"},
            ]
        }


def test_a_failed_creation_tells_the_cause():
    client = FakeCloudFormation(None, "ROLLBACK_COMPLETE")
    with pytest.raises(stacks.StackError, match=r"ROLLBACK_COMPLETE\. Bucket: Access Denied"):
        stacks._deploy_one(client, "me", "storage")


def test_what_a_failed_creation_left_is_deleted_first():
    client = FakeCloudFormation("ROLLBACK_COMPLETE", None, "CREATE_COMPLETE")
    assert stacks._deploy_one(client, "me", "storage") == "created"
    assert client.calls == ["delete", "create"]
