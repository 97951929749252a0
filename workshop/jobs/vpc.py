"""A subnet and a security group for the jobs of a seat: given, or made on the emulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workshop.account.stacks import NETWORKS, status, tags

if TYPE_CHECKING:
    from workshop.jobs.session import Session

CIDR, SUBNET = "10.10.0.0/16", "10.10.0.0/20"


class NoNetwork(Exception):
    """There is no network for the job; the message names the remedy."""


def network(
    session: Session, subnets=(), security_group_ids=(), serving: bool = False
) -> dict[str, list[str]]:
    """Where a job's instances are: `subnets` and `security_group_ids`, as an estimator takes them.

    Args:
        session: what workshop.session returned.
        subnets, security_group_ids: ids that exist; both or none. Without them the seat's network
            stack is taken. If it has none, a VPC with one subnet is made on the emulator,
            once for each seat. On AWS none is made.
        serving: for an endpoint and not for a job: of the stack, subnets in two zones.

    Raises:
        NoNetwork: the ids are needed, or one of the two lists is missing.
    """
    if bool(subnets) != bool(security_group_ids):
        raise NoNetwork("Give both, subnets and security_group_ids, or neither.")
    if subnets:
        return {"subnets": list(subnets), "security_group_ids": list(security_group_ids)}
    if from_stack := network_from_stack(session, serving):
        return from_stack
    if session.target == "aws":
        raise NoNetwork(
            "On AWS a job in a VPC needs an existing network. Make the seat's own, which costs "
            f"nothing: workshop stacks up network --target aws --seat {session.seat}. Or set the "
            "parameters subnets and security_group_ids. The subnet needs a way to S3 (a gateway "
            "endpoint), the group must let its own members reach each other on every port, and "
            "the training role must be allowed to use that VPC, as cloudformation/network.yaml "
            "allows it for its own."
        )
    ec2 = session.client("ec2")
    vpc = _existing_id(ec2.describe_vpcs, session, "Vpcs", "VpcId") or _make_vpc(ec2, session)
    subnet = _existing_id(ec2.describe_subnets, session, "Subnets", "SubnetId")
    group = _existing_id(ec2.describe_security_groups, session, "SecurityGroups", "GroupId")
    if not _existing_id(ec2.describe_vpc_endpoints, session, "VpcEndpoints", "VpcEndpointId"):
        _make_s3_endpoint(ec2, session, vpc)
    return {
        "subnets": [subnet or _make_subnet(ec2, session, vpc)],
        "security_group_ids": [group or _make_group(ec2, session, vpc)],
    }


def network_from_stack(session: Session, serving: bool = False) -> dict[str, list[str]] | None:
    """The subnet and the group of the seat's network or subnets stack; None if it has neither.

    serving: with the subnet of a second zone, which endpoints want and jobs must not have.
    """
    usable = [stack for stack in status(session, NETWORKS) if stack.usable]
    if not usable:
        return None
    made = usable[0].outputs
    subnets = [made["SubnetId"], *([made["ServingSubnetId"]] if serving else [])]
    return {"subnets": subnets, "security_group_ids": [made["SecurityGroupId"]]}


def _existing_id(describe, session: Session, many: str, name: str) -> str:
    """The id of the seat's existing resource; empty if none. Deleted ones may still be listed."""
    filters = [
        {"Name": f"tag:{tag['Key']}", "Values": [tag["Value"]]} for tag in tags(session.seat)
    ]
    resources = describe(Filters=filters)[many]
    return next((each[name] for each in resources if each.get("State") != "deleted"), "")


def _tagged(session: Session, kind: str) -> list[dict]:
    return [{"ResourceType": kind, "Tags": tags(session.seat)}]


def _make_vpc(ec2, session) -> str:
    made = ec2.create_vpc(CidrBlock=CIDR, TagSpecifications=_tagged(session, "vpc"))
    return made["Vpc"]["VpcId"]


def _make_s3_endpoint(ec2, session, vpc: str) -> None:
    """A gateway endpoint in the VPC's main route table, which its subnets use."""
    filters = [{"Name": "vpc-id", "Values": [vpc]}]
    tables = ec2.describe_route_tables(Filters=filters)["RouteTables"]
    ec2.create_vpc_endpoint(
        VpcId=vpc,
        VpcEndpointType="Gateway",
        ServiceName=f"com.amazonaws.{ec2.meta.region_name}.s3",
        RouteTableIds=[table["RouteTableId"] for table in tables],
        TagSpecifications=_tagged(session, "vpc-endpoint"),
    )


def _make_subnet(ec2, session, vpc: str) -> str:
    """One subnet, so that all instances of a job are in one availability zone."""
    made = ec2.create_subnet(
        VpcId=vpc, CidrBlock=SUBNET, TagSpecifications=_tagged(session, "subnet")
    )
    return made["Subnet"]["SubnetId"]


def _make_group(ec2, session, vpc: str) -> str:
    """A security group that admits its own members alone, on every port."""
    group = ec2.create_security_group(
        VpcId=vpc,
        GroupName=f"workshop-{session.seat}-training",
        Description="Instances of one training job reach each other",
        TagSpecifications=_tagged(session, "security-group"),
    )["GroupId"]
    themselves = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=themselves)
    return group
