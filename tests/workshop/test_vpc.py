"""The network for a job: what is given is taken, locally one is made, on AWS none is."""

from types import SimpleNamespace

import pytest

from workshop.vpc import NoNetwork, network


def test_a_network_is_made_once_for_a_seat(session):
    first, again = network(session), network(session)
    assert first == again
    ec2 = session.client("ec2")
    (group,) = ec2.describe_security_groups(GroupIds=first["security_group_ids"])["SecurityGroups"]
    (subnet,) = ec2.describe_subnets(SubnetIds=first["subnets"])["Subnets"]
    assert group["VpcId"] == subnet["VpcId"]
    (rule,) = group["IpPermissions"]
    assert rule["IpProtocol"] == "-1" and rule["IpRanges"] == []
    assert [one["GroupId"] for one in rule["UserIdGroupPairs"]] == first["security_group_ids"]


def test_another_seat_has_another_network(session):
    other = SimpleNamespace(target="local", seat="other", client=session.client)
    assert not set(network(session)["subnets"]) & set(network(other)["subnets"])


def test_what_is_given_is_taken_on_aws_too():
    aws = SimpleNamespace(target="aws")
    given = {"subnets": ["subnet-1"], "security_group_ids": ["sg-1"]}
    assert network(aws, **given) == given


def test_on_aws_nothing_is_made():
    with pytest.raises(NoNetwork, match="set the parameters subnets and security_group_ids"):
        network(SimpleNamespace(target="aws"))


@pytest.mark.parametrize("given", [{"subnets": ["s"]}, {"security_group_ids": ["g"]}])
def test_half_a_network_is_an_error(given):
    with pytest.raises(NoNetwork, match="Give both"):
        network(SimpleNamespace(target="local"), **given)
