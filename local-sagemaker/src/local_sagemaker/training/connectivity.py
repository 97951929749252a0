"""What a job in a VPC reaches: its other instances, S3, the internet.

Read from EC2 (moto's) when the job is created: security groups, route tables, S3 endpoints, NAT
gateways. It is all or nothing: instances reach each other on every TCP port, or on none. Network
ACLs and endpoint policies are not looked at.

SageMaker's instances in a VPC have no public address, so an internet gateway alone is no way
out; a NAT gateway is, whose own subnet leads to an internet gateway
(https://github.com/aws/sagemaker-python-sdk/issues/2199, read 2026-11-21).
"""

from __future__ import annotations

import dataclasses
import ipaddress

from botocore.exceptions import ClientError

from local_sagemaker.core.aws import LocalAws
from local_sagemaker.protocol.errors import validation

ANYWHERE = "0.0.0.0/0"
HTTPS = 443
ALL_PORTS = (1, 65535)
# After "Data download failed:" or "Artifact upload failed:", as AWS words it
# (https://github.com/aws/amazon-sagemaker-operator-for-k8s/pull/22, read 2026-11-21).
NO_S3 = (
    "Please ensure that the subnet's route table has a route to an S3 VPC endpoint or a NAT "
    "device, and both the security groups and the subnet's network ACL allow outbound traffic to S3"
)


@dataclasses.dataclass(frozen=True)
class Reach:
    """What a job's instances reach.

    closed: why not each other; empty if they do. s3: whether the job's data comes and goes.
    endpoint: whether its scripts reach the emulator. internet: whether pip reaches an index.
    """

    closed: str = ""
    s3: bool = True
    endpoint: bool = True
    internet: bool = True


EVERYTHING = Reach()


def for_job(aws: LocalAws, request: dict, region: str) -> Reach:
    """What the job that `request` describes reaches; without VpcConfig everything.

    Raises AwsError (ValidationException) for a subnet or a group that does not exist.
    """
    isolated = bool(request.get("EnableNetworkIsolation"))
    if "VpcConfig" not in request:
        return Reach(endpoint=not isolated, internet=not isolated)
    ec2, config = aws.client("ec2", region), request["VpcConfig"]
    try:
        subnets = ec2.describe_subnets(SubnetIds=config["Subnets"])["Subnets"]
        ids = config["SecurityGroupIds"]
        groups = ec2.describe_security_groups(GroupIds=ids)["SecurityGroups"]
    except ClientError as error:
        raise validation(f"VpcConfig: {error.response['Error']['Message']}") from error
    ways = [_Ways(ec2, subnet) for subnet in subnets]
    outside = lets(groups, "IpPermissionsEgress", (HTTPS, HTTPS), [ANYWHERE])
    nat = outside and all(one.to_nat() for one in ways)
    s3 = nat or (_lets_to_s3(groups) and all(one.to_s3() for one in ways))
    return Reach(
        closed=closed(groups, [one["CidrBlock"] for one in subnets]),
        s3=s3,
        endpoint=s3 and not isolated,
        internet=nat and not isolated,
    )


def closed(groups: list[dict], addresses: list[str]) -> str:
    """Why members of all these groups do not reach each other; empty if they do.

    addresses: the CIDR blocks in which the members are.
    """
    names = ", ".join(one["GroupId"] for one in groups)
    for member, way in (("IpPermissions", "inbound"), ("IpPermissionsEgress", "outbound")):
        if not lets(groups, member, ALL_PORTS, addresses, among=True):
            return f"no {way} rule of {names} allows all TCP from its own members"
    return ""


def lets(
    groups: list[dict],
    member: str,
    ports: tuple[int, int],
    addresses: list[str],
    among: bool = False,
) -> bool:
    """Whether a rule lets TCP through: on all `ports`, and for all `addresses`.

    member: "IpPermissions" (in) or "IpPermissionsEgress" (out). among: a rule that names one of
    the groups themselves will do, too.
    """
    own = {one["GroupId"] for one in groups} if among else set()
    return any(
        _covers(rule, ports)
        and (
            own & {pair.get("GroupId") for pair in rule.get("UserIdGroupPairs", [])}
            or all(_within(one, rule.get("IpRanges", [])) for one in addresses)
        )
        for group in groups
        for rule in group[member]
    )


def _covers(rule: dict, ports: tuple[int, int]) -> bool:
    if rule["IpProtocol"] == "-1":
        return True
    first, last = rule.get("FromPort", -1), rule.get("ToPort", -1)
    whole = first == -1 or (first <= ports[0] and last >= ports[1])
    return rule["IpProtocol"] in ("tcp", "6") and whole


def _within(block: str, ranges: list[dict]) -> bool:
    inner = ipaddress.ip_network(block)
    return any(inner.subnet_of(ipaddress.ip_network(one["CidrIp"])) for one in ranges)


def _lets_to_s3(groups: list[dict]) -> bool:
    """Whether HTTPS may leave: to anywhere, or to a prefix list (S3's, for a gateway endpoint)."""
    return lets(groups, "IpPermissionsEgress", (HTTPS, HTTPS), [ANYWHERE]) or any(
        _covers(rule, (HTTPS, HTTPS)) and rule.get("PrefixListIds")
        for group in groups
        for rule in group["IpPermissionsEgress"]
    )


class _Ways:
    """The ways out of a subnet. ec2: a boto3 client. subnet: as DescribeSubnets gives it."""

    def __init__(self, ec2, subnet: dict) -> None:
        self.ec2, self.vpc = ec2, subnet["VpcId"]
        self.table = self._table_of(subnet["SubnetId"])

    def _table_of(self, subnet: str) -> dict:
        """The subnet's route table: its own, or else its VPC's main one."""
        mine = [{"Name": "vpc-id", "Values": [self.vpc]}]
        tables = self.ec2.describe_route_tables(Filters=mine)["RouteTables"]
        held = [(table, one) for table in tables for one in table["Associations"]]
        own = [table for table, one in held if one.get("SubnetId") == subnet]
        main = [table for table, one in held if one.get("Main")]
        return next(iter(own + main), {"RouteTableId": "", "Routes": []})

    def to_s3(self) -> bool:
        """Whether an S3 endpoint is there: a gateway in the route table, or an interface."""
        found = self.ec2.describe_vpc_endpoints()["VpcEndpoints"]  # moto has no filter by VPC
        return any(
            one["VpcId"] == self.vpc
            and one["State"] != "deleted"  # which is listed for a while
            and one["ServiceName"].endswith(".s3")
            and (
                one["VpcEndpointType"] == "Interface"
                or self.table["RouteTableId"] in one.get("RouteTableIds", [])
            )
            for one in found
        )

    def to_nat(self) -> bool:
        """Whether a NAT gateway is there, and a way from it to the internet."""
        gateways = [one["NatGatewayId"] for one in self._defaults(self.table, "NatGatewayId")]
        if not gateways:
            return False
        found = self.ec2.describe_nat_gateways(NatGatewayIds=gateways)["NatGateways"]
        return any(
            one["State"] == "available" and self._is_public(self._table_of(one["SubnetId"]))
            for one in found
        )

    def _is_public(self, table: dict) -> bool:
        return any(
            one["GatewayId"].startswith("igw-") for one in self._defaults(table, "GatewayId")
        )

    @staticmethod
    def _defaults(table: dict, target: str) -> list[dict]:
        """The routes to everywhere that lead to this kind of target."""
        routes = [one for one in table["Routes"] if one.get(target)]
        return [one for one in routes if one.get("DestinationCidrBlock") == ANYWHERE]
