"""The network stack: what it makes, its parts that are optional, and what it costs."""

import boto3
import pytest
import stacks_harness

from workshop.account import stacks
from workshop.account.prices import hourly_cost
from workshop.jobs import vpc

REGION = stacks_harness.REGION
SERVICES = {"s3", "sagemaker.api", "sagemaker.runtime", "sts", "logs", "ecr.api", "ecr.dkr"}


@pytest.fixture(scope="module", autouse=True)
def in_process():
    with pytest.MonkeyPatch.context() as patch, stacks_harness.aws(patch):
        yield


@pytest.fixture(scope="module")
def ec2(in_process):
    return boto3.client("ec2", region_name=REGION)


def up(seat, **parameters):
    session = stacks_harness.session(seat)
    names = ("storage", "roles", "network")
    *_, done = stacks.deploy(session, names, lambda _: None, parameters)
    return session, done


@pytest.fixture(scope="module")
def plain(in_process):
    """A network without its optional parts: (session, what `deploy` says of it)."""
    return up("plain")


def usd_an_hour(session):
    (row,) = stacks.status(session, ("network",))
    return hourly_cost(session, row)


def endpoints(ec2, done):
    filters = [{"Name": "vpc-id", "Values": [done.outputs["VpcId"]]}]
    rows = ec2.describe_vpc_endpoints(Filters=filters)["VpcEndpoints"]
    return [row for row in rows if row["State"] == "available"]


def routes(ec2, subnet):
    filters = [{"Name": "association.subnet-id", "Values": [subnet]}]
    (table,) = ec2.describe_route_tables(Filters=filters)["RouteTables"]
    return table["Routes"]


def zones(ec2, done):
    """The zones of the subnets for training and for serving."""
    expected = [done.outputs["SubnetId"], done.outputs["ServingSubnetId"]]
    rows = ec2.describe_subnets(SubnetIds=expected)["Subnets"]
    return [row["AvailabilityZone"] for row in sorted(rows, key=lambda row: row["CidrBlock"])]


def test_the_subnet_is_private(ec2, plain):
    _, done = plain
    (subnet,) = ec2.describe_subnets(SubnetIds=[done.outputs["SubnetId"]])["Subnets"]
    assert not subnet["MapPublicIpOnLaunch"]
    ways = [row.get("DestinationCidrBlock") for row in routes(ec2, subnet["SubnetId"])]
    assert "0.0.0.0/0" not in ways
    assert not [
        row
        for row in ec2.describe_internet_gateways()["InternetGateways"]
        if done.outputs["VpcId"] in [there["VpcId"] for there in row["Attachments"]]
    ]


def test_jobs_are_in_one_zone_and_an_endpoint_in_two_with_a_way_to_s3(ec2, plain):
    session, done = plain
    assert zones(ec2, done) == [f"{REGION}a", f"{REGION}b"]
    expected = [done.outputs["SubnetId"], done.outputs["ServingSubnetId"]]
    assert vpc.network_from_stack(session, serving=True)["subnets"] == expected
    assert vpc.network(session)["subnets"] == expected[:1], "a job in two zones pays by the GB"
    assert routes(ec2, expected[1]) == routes(ec2, expected[0])


def test_services_have_endpoints_in_the_zones_that_are_named(ec2):
    others = {"AvailabilityZone": f"{REGION}c", "ServingZone": f"{REGION}d"}
    session, done = up("served", InterfaceEndpoints="yes", **others)
    assert zones(ec2, done) == [f"{REGION}c", f"{REGION}d"]
    rows = {
        row["ServiceName"].removeprefix(f"com.amazonaws.{REGION}."): row
        for row in endpoints(ec2, done)
    }
    assert set(rows) == SERVICES
    assert rows.pop("s3")["VpcEndpointType"] == "Gateway"
    for name, row in rows.items():
        assert row["VpcEndpointType"] == "Interface" and row["PrivateDnsEnabled"], name
        assert row["SubnetIds"] == [done.outputs["SubnetId"]]
        named = {"GroupIds": [row["Groups"][0]["GroupId"]]}
        (rule,) = ec2.describe_security_groups(**named)["SecurityGroups"][0]["IpPermissions"]
        assert (rule["FromPort"], rule["ToPort"]) == (443, 443)
        assert rule["UserIdGroupPairs"][0]["GroupId"] == done.outputs["SecurityGroupId"]
    cost = usd_an_hour(session)
    assert cost.parts == {"interface-endpoint": 6} and cost.usd == pytest.approx(0.06)


def test_the_nat_comes_and_goes_with_its_parameter_and_its_cost_and_all_goes_at_the_end(ec2):
    before = {row["VpcId"] for row in ec2.describe_vpcs()["Vpcs"]}
    session, done = up("nat")
    assert len(endpoints(ec2, done)) == 1 and usd_an_hour(session).usd == 0
    _, changed = up("nat", Nat="yes")
    assert changed.change == "updated" and changed.outputs == done.outputs
    (nat,) = ec2.describe_nat_gateways()["NatGateways"]
    assert nat["State"] == "available" and nat["SubnetId"] != done.outputs["SubnetId"]
    out = [row for row in routes(ec2, done.outputs["SubnetId"]) if row.get("NatGatewayId")]
    assert [row["DestinationCidrBlock"] for row in out] == ["0.0.0.0/0"]
    assert len(endpoints(ec2, done)) == 1, "a parameter that was not given keeps its value"
    cost = usd_an_hour(session)
    assert cost.parts == {"nat-gateway": 1, "public-ipv4": 1}
    assert cost.usd == pytest.approx(0.05)
    up("nat", Nat="no")
    assert [row["State"] for row in ec2.describe_nat_gateways()["NatGateways"]] == ["deleted"]
    assert not ec2.describe_addresses()["Addresses"]
    up("nat", Nat="yes")
    groups = {row["GroupId"] for row in ec2.describe_security_groups()["SecurityGroups"]}
    stacks.delete(session, log=lambda _: None)
    assert {row["VpcId"] for row in ec2.describe_vpcs()["Vpcs"]} == before
    assert not endpoints(ec2, done) and not ec2.describe_addresses()["Addresses"]
    assert not ec2.describe_internet_gateways()["InternetGateways"]
    left = {row["GroupId"] for row in ec2.describe_security_groups()["SecurityGroups"]}
    assert done.outputs["SecurityGroupId"] in groups - left
