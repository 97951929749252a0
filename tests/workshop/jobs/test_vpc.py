"""The network for a job: what is given is taken, locally one is made, on AWS none is."""

from types import SimpleNamespace

import pytest

from local_sagemaker.cluster.spec import Connectivity
from local_sagemaker.training.connectivity import connectivity_for_job
from workshop.account import stacks
from workshop.jobs.vpc import NoNetwork, network


def test_a_network_is_made_once_for_a_seat(session):
    first, again = network(session), network(session)
    assert first == again
    ec2 = session.client("ec2")
    (group,) = ec2.describe_security_groups(GroupIds=first["security_group_ids"])["SecurityGroups"]
    (subnet,) = ec2.describe_subnets(SubnetIds=first["subnets"])["Subnets"]
    assert group["VpcId"] == subnet["VpcId"]
    (rule,) = group["IpPermissions"]
    assert rule["IpProtocol"] == "-1" and rule["IpRanges"] == []
    assert [pair["GroupId"] for pair in rule["UserIdGroupPairs"]] == first["security_group_ids"]


@pytest.mark.parametrize("made", ["here", "by the stack"])
def test_jobs_reach_each_other_and_s3_in_it(session, sagemaker_emulator, made):
    seat = SimpleNamespace(target="local", seat="reach", client=session.client)
    if made == "by the stack":
        seat.seat = "reached"
        stacks.deploy(seat, ("storage", "roles", "network"), say=lambda _: None)
    ids = network(seat)
    config = {
        "Subnets": ids["subnets"],
        "SecurityGroupIds": ids["security_group_ids"],
    }
    aws = sagemaker_emulator.aws()
    assert connectivity_for_job(aws, {"VpcConfig": config}, session.region) == Connectivity(
        internet=False
    )


def test_another_seat_has_another_network(session):
    other = SimpleNamespace(target="local", seat="other", client=session.client)
    assert not set(network(session)["subnets"]) & set(network(other)["subnets"])


def test_what_is_given_is_taken_on_aws_too():
    aws = SimpleNamespace(target="aws")
    given = {"subnets": ["subnet-1"], "security_group_ids": ["sg-1"]}
    assert network(aws, **given) == given


def test_on_aws_nothing_is_made_and_the_way_to_a_network_is_told(session):
    aws = SimpleNamespace(target="aws", seat="none", client=session.client)
    before = session.client("ec2").describe_vpcs()["Vpcs"]
    with pytest.raises(NoNetwork, match="stacks up network --target aws --seat none") as error:
        network(aws)
    assert "set the parameters subnets and security_group_ids" in str(error.value)
    assert session.client("ec2").describe_vpcs()["Vpcs"] == before


@pytest.mark.parametrize("target", ["local", "aws"])
def test_the_seats_network_stack_is_taken(session, target):
    seat = SimpleNamespace(target=target, seat="stack", client=session.client)
    *_, stack = stacks.deploy(seat, ("storage", "roles", "network"), say=lambda _: None)
    assert network(seat) == {
        "subnets": [stack.outputs["SubnetId"]],
        "security_group_ids": [stack.outputs["SecurityGroupId"]],
    }


@pytest.mark.parametrize("given", [{"subnets": ["s"]}, {"security_group_ids": ["g"]}])
def test_half_a_network_is_an_error(given):
    with pytest.raises(NoNetwork, match="Give both"):
        network(SimpleNamespace(target="local"), **given)
