"""What the tests of jobs in a VPC share: networks, and instances that try to reach things."""

import sys

from emulator_harness import SCRIPTS, command_request, ended

from local_sagemaker.pytest_plugin import TrainingJob

ITSELF, ANYWHERE = "itself", "0.0.0.0/0"


class Network:
    """A VPC of the test's own with one subnet and one group, on an emulator's EC2."""

    def __init__(self, emulator, number: int) -> None:
        self.ec2 = ec2 = emulator.client("ec2")
        self.base = f"10.{number}"
        self.vpc = ec2.create_vpc(CidrBlock=f"{self.base}.0.0/16")["Vpc"]["VpcId"]
        self.subnet = self._subnet(0)
        made = ec2.create_security_group(VpcId=self.vpc, GroupName="g", Description="of a test")
        self.group = made["GroupId"]
        filters = [{"Name": "vpc-id", "Values": [self.vpc]}]
        (table,) = ec2.describe_route_tables(Filters=filters)["RouteTables"]
        self.table = table["RouteTableId"]

    def _subnet(self, third: int) -> str:
        block = f"{self.base}.{third}.0/24"
        return self.ec2.create_subnet(VpcId=self.vpc, CidrBlock=block)["Subnet"]["SubnetId"]

    @property
    def config(self) -> dict:
        """VpcConfig of a request."""
        return {"Subnets": [self.subnet], "SecurityGroupIds": [self.group]}

    def _rule(self, peer: str = ITSELF, protocol: str = "-1", **ports: int) -> dict:
        """The arguments of a change of the group's rules. peer: ITSELF or a CIDR block."""
        itself = {"UserIdGroupPairs": [{"GroupId": self.group}]}
        whom = itself if peer == ITSELF else {"IpRanges": [{"CidrIp": peer}]}
        rule = {"IpProtocol": protocol} | ports | whom
        return {"GroupId": self.group, "IpPermissions": [rule]}

    def let_in(self, **rule) -> None:
        self.ec2.authorize_security_group_ingress(**self._rule(**rule))

    def let_nothing_out(self) -> None:
        """Take away the rule that every new group has."""
        self.ec2.revoke_security_group_egress(**self._rule(ANYWHERE))

    def let_out(self) -> None:
        """An outbound rule to the group itself."""
        self.ec2.authorize_security_group_egress(**self._rule())

    def s3_endpoint(self, **options) -> None:
        """A way to S3: a gateway endpoint, unless told otherwise."""
        service = f"com.amazonaws.{self.ec2.meta.region_name}.s3"
        kind = {"VpcEndpointType": "Gateway", "RouteTableIds": [self.table]} | options
        self.ec2.create_vpc_endpoint(VpcId=self.vpc, ServiceName=service, **kind)

    def internet_gateway(self, table: str) -> None:
        """A route from `table` to the internet."""
        made = self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        self.ec2.attach_internet_gateway(InternetGatewayId=made, VpcId=self.vpc)
        self._default(table, GatewayId=made)

    def nat(self, public: bool) -> None:
        """A NAT gateway in another subnet, which leads to the internet if it is public."""
        other = self._subnet(1)
        table = self.ec2.create_route_table(VpcId=self.vpc)["RouteTable"]["RouteTableId"]
        self.ec2.associate_route_table(RouteTableId=table, SubnetId=other)
        if public:
            self.internet_gateway(table)
        address = self.ec2.allocate_address(Domain="vpc")["AllocationId"]
        made = self.ec2.create_nat_gateway(SubnetId=other, AllocationId=address)["NatGateway"]
        self._default(self.table, NatGatewayId=made["NatGatewayId"])

    def _default(self, table: str, **target: str) -> None:
        self.ec2.create_route(RouteTableId=table, DestinationCidrBlock=ANYWHERE, **target)


def knocking(emulator, name: str, config: dict, count: int, *arguments: str) -> TrainingJob:
    """A job without the toolkit whose instances say what they reach; it has ended."""
    hosts = [f"algo-{number + 1}" for number in range(count)]
    command = [sys.executable, str(SCRIPTS / "knock.py"), *hosts, *arguments]
    return ended(emulator, command_request(name, command, count, VpcConfig=config))
