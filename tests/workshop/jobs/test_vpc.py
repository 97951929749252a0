"""The network for a job: what is given is taken, locally one is made, on AWS none is."""

from types import SimpleNamespace

import pytest

from local_sagemaker.cluster.spec import Connectivity
from local_sagemaker.training.connectivity import connectivity_for_job
from workshop.jobs.vpc import NoNetwork, network, network_from_stack


def seat_of(session, name: str, target: str = "local") -> SimpleNamespace:
    where = {"target": target, "seat": name, "region": session.region}
    return SimpleNamespace(client=session.client, **where)


def connectivity(emulator, region: str, network: dict) -> Connectivity:
    config = {"Subnets": network["subnets"], "SecurityGroupIds": network["security_group_ids"]}
    return connectivity_for_job(emulator.aws, {"VpcConfig": config}, region)


def test_a_network_is_made_once_for_a_seat(session, sagemaker_emulator):
    first, again = network(session), network(session)
    assert first == again == network(seat_of(session, session.seat, "aws"))
    assert not set(first["subnets"]) & set(network(seat_of(session, "other"))["subnets"])
    assert len(network_from_stack(session, serving=True)["subnets"]) == 2
    ec2 = session.client("ec2")
    (group,) = ec2.describe_security_groups(GroupIds=first["security_group_ids"])["SecurityGroups"]
    (subnet,) = ec2.describe_subnets(SubnetIds=first["subnets"])["Subnets"]
    assert group["VpcId"] == subnet["VpcId"]
    (rule,) = group["IpPermissions"]
    assert rule["IpProtocol"] == "-1" and rule["IpRanges"] == []
    assert [pair["GroupId"] for pair in rule["UserIdGroupPairs"]] == first["security_group_ids"]
    assert connectivity(sagemaker_emulator, session.region, first) == Connectivity(internet=False)


def test_what_is_given_is_taken_on_aws_too():
    given = {"subnets": ["subnet-1"], "security_group_ids": ["sg-1"]}
    assert network(SimpleNamespace(target="aws"), **given) == given
    for name, ids in given.items():
        with pytest.raises(NoNetwork, match="Give both"):
            network(SimpleNamespace(target="local"), **{name: ids})


def test_on_aws_nothing_is_made_and_the_way_to_a_network_is_told(session):
    before = session.client("ec2").describe_vpcs()["Vpcs"]
    with pytest.raises(NoNetwork, match="stacks up network --target aws --seat none") as error:
        network(seat_of(session, "none", "aws"))
    assert "set the parameters subnets and security_group_ids" in str(error.value)
    assert session.client("ec2").describe_vpcs()["Vpcs"] == before
