"""What a job reaches: its other instances, S3, the internet; and how fast its links are.

In a VPC that is read from EC2 (moto's) when the job is created: security groups, route tables, S3
endpoints, NAT gateways. It is all or nothing: instances reach each other on every TCP port, or on
none. Network ACLs and endpoint policies are not looked at.

SageMaker's instances in a VPC have no public address, so an internet gateway alone is no way
out; a NAT gateway is, whose own subnet leads to an internet gateway
(https://github.com/aws/sagemaker-python-sdk/issues/2199, read 2026-11-21).
"""

from __future__ import annotations

import os
from ipaddress import IPv4Network

from botocore.exceptions import ClientError

from local_sagemaker.cluster.bandwidth import Bandwidth, parse
from local_sagemaker.cluster.relay import EMULATOR_PORT, PROXY_PORT
from local_sagemaker.cluster.spec import Connectivity
from local_sagemaker.core.aws import LocalAws
from local_sagemaker.emulator_error import EmulatorError
from local_sagemaker.protocol.errors import validation

BANDWIDTH = "LOCAL_SAGEMAKER_BANDWIDTH"  # the variable of a job's Environment
SERVICE = "LOCAL_SAGEMAKER_SERVICE"  # a variable of the emulator's
ANYWHERE = "0.0.0.0/0"
HTTPS = 443
ALL_PORTS = (1, 65535)
# After "Data download failed:" or "Artifact upload failed:", as AWS words it
# (https://github.com/aws/amazon-sagemaker-operator-for-k8s/pull/22, read 2026-11-21).
NO_S3 = (
    "Please ensure that the subnet's route table has a route to an S3 VPC endpoint or a NAT "
    "device, and both the security groups and the subnet's network ACL allow outbound traffic to S3"
)


def connectivity_for_job(aws: LocalAws, request: dict, region: str) -> Connectivity:
    """What the job that `request` describes reaches; without VpcConfig everything.

    Raises AwsError (ValidationException) for a subnet or a group that does not exist, and for a
    malformed bandwidth.
    """
    online, bandwidth = not request.get("EnableNetworkIsolation"), bandwidth_for_job(request)
    service = service_port() if online else 0
    if "VpcConfig" not in request:
        return Connectivity(emulator=online, internet=online, bandwidth=bandwidth, service=service)
    ec2, config = aws.client("ec2", region), request["VpcConfig"]
    try:
        subnets = ec2.describe_subnets(SubnetIds=config["Subnets"])["Subnets"]
        ids = config["SecurityGroupIds"]
        groups = ec2.describe_security_groups(GroupIds=ids)["SecurityGroups"]
    except ClientError as error:
        raise validation(f"VpcConfig: {error.response['Error']['Message']}") from error
    routes = [Routes(ec2, subnet) for subnet in subnets]
    outside = allows(groups, "IpPermissionsEgress", (HTTPS, HTTPS), [ANYWHERE])
    nat = outside and all(route.to_nat() for route in routes)
    s3 = nat or (outside and all(route.to_s3() for route in routes))
    return Connectivity(
        closed_reason=closed_reason(groups, [subnet["CidrBlock"] for subnet in subnets]),
        emulator=s3 and online,
        internet=nat and online,
        s3=s3,
        bandwidth=bandwidth,
        service=service,
    )


def service_port() -> int:
    """The port of this machine's loopback that jobs reach; 0 if none. Raises EmulatorError.

    Whoever starts the emulator decides: a job can start others, and ask for anything in them.
    """
    port = os.environ.get(SERVICE, "0")
    if not port.isdecimal() or int(port) in (EMULATOR_PORT, PROXY_PORT):
        raise EmulatorError(
            f"{SERVICE} is {port!r}; it must be the number of a port, other than {EMULATOR_PORT} "
            f"and {PROXY_PORT}."
        )
    return int(port)


def bandwidth_for_job(request: dict) -> Bandwidth | None:
    """The bandwidth that a job asks for; None if it is unlimited."""
    words = request.get("Environment", {}).get(BANDWIDTH)
    if words is None:
        return None
    try:
        bandwidth = parse(words)
    except ValueError as error:
        raise validation(f"Environment's {BANDWIDTH}: {error}") from error
    return bandwidth if request["ResourceConfig"]["InstanceCount"] > 1 else None


def closed_reason(groups: list[dict], addresses: list[str]) -> str:
    """Why members of all these groups do not reach each other; empty if they do.

    addresses: the CIDR blocks in which the members are.
    """
    names = ", ".join(group["GroupId"] for group in groups)
    for member, direction in (("IpPermissions", "inbound"), ("IpPermissionsEgress", "outbound")):
        if not allows(groups, member, ALL_PORTS, addresses, among=True):
            return f"no {direction} rule of {names} allows all TCP from its own members"
    return ""


def allows(
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
    ids = {group["GroupId"] for group in groups} if among else set()
    return any(
        _covers(rule, ports)
        and (
            ids & {pair.get("GroupId") for pair in rule.get("UserIdGroupPairs", [])}
            or all(
                any(IPv4Network(block).subnet_of(IPv4Network(outer["CidrIp"])) for outer in ranges)
                for block in addresses
            )
        )
        for group in groups
        for rule in group[member]
        for ranges in [rule.get("IpRanges", [])]
    )


def _covers(rule: dict, ports: tuple[int, int]) -> bool:
    if rule["IpProtocol"] == "-1":
        return True
    first, last = rule.get("FromPort", -1), rule.get("ToPort", -1)
    whole = first == -1 or (first <= ports[0] and last >= ports[1])
    return rule["IpProtocol"] in ("tcp", "6") and whole


class Routes:
    """The routes out of a subnet. ec2: a boto3 client. subnet: as DescribeSubnets gives it."""

    def __init__(self, ec2, subnet: dict) -> None:
        self.ec2, self.vpc = ec2, subnet["VpcId"]
        self.table = self._table(subnet["SubnetId"])

    def _table(self, subnet: str) -> dict:
        """The subnet's route table: its own, or else its VPC's main one."""
        vpc = [{"Name": "vpc-id", "Values": [self.vpc]}]
        tables = self.ec2.describe_route_tables(Filters=vpc)["RouteTables"]
        pairs = [(table, link) for table in tables for link in table["Associations"]]
        explicit = [table for table, link in pairs if link.get("SubnetId") == subnet]
        main = [table for table, link in pairs if link.get("Main")]
        return next(iter(explicit + main), {"RouteTableId": "", "Routes": []})

    def to_s3(self) -> bool:
        """Whether an S3 endpoint is there: a gateway in the route table, or an interface."""
        endpoints = self.ec2.describe_vpc_endpoints()["VpcEndpoints"]  # moto has no filter by VPC
        return any(
            endpoint["VpcId"] == self.vpc
            and endpoint["State"] != "deleted"  # which is listed for a while
            and endpoint["ServiceName"].endswith(".s3")
            and (
                endpoint["VpcEndpointType"] == "Interface"
                or self.table["RouteTableId"] in endpoint.get("RouteTableIds", [])
            )
            for endpoint in endpoints
        )

    def to_nat(self) -> bool:
        """Whether a NAT gateway is there, and a way from it to the internet."""
        ids = [route["NatGatewayId"] for route in _default_routes(self.table, "NatGatewayId")]
        if not ids:
            return False
        gateways = self.ec2.describe_nat_gateways(NatGatewayIds=ids)["NatGateways"]
        return any(
            gateway["State"] == "available" and route["GatewayId"].startswith("igw-")
            for gateway in gateways
            for route in _default_routes(self._table(gateway["SubnetId"]), "GatewayId")
        )


def _default_routes(table: dict, target: str) -> list[dict]:
    """The routes to everywhere that lead to this kind of target."""
    routes = [route for route in table["Routes"] if route.get(target)]
    return [route for route in routes if route.get("DestinationCidrBlock") == ANYWHERE]
