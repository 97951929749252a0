"""CloudFormation on the endpoint: stacks of a network, and stacks that are gone."""

import subprocess
import sys
from pathlib import Path

import pytest

from endpoint_harness import Endpoint

BUCKET = """
Resources:
  Bucket:
    Type: AWS::S3::Bucket
    Properties:
      BucketName: one-that-goes
Outputs:
  Name:
    Value: !Ref Bucket
    Export:
      Name: name-that-goes
"""
NETWORK = """
Parameters:
  Nat:
    Type: String
    Default: "no"
Conditions:
  HasNat: !Equals [!Ref Nat, "yes"]
Resources:
  Vpc:
    Type: AWS::EC2::VPC
    Properties: {CidrBlock: 10.0.0.0/16}
  Subnet:
    Type: AWS::EC2::Subnet
    Properties: {VpcId: !Ref Vpc, CidrBlock: 10.0.0.0/24}
  Routes:
    Type: AWS::EC2::RouteTable
    Properties: {VpcId: !Ref Vpc}
  SubnetRoutes:
    Type: AWS::EC2::SubnetRouteTableAssociation
    Properties: {SubnetId: !Ref Subnet, RouteTableId: !Ref Routes}
  Endpoint:
    Type: AWS::EC2::VPCEndpoint
    Properties:
      VpcId: !Ref Vpc
      VpcEndpointType: Gateway
      ServiceName: com.amazonaws.us-east-1.s3
      RouteTableIds: [!Ref Routes]
  Group:
    Type: AWS::EC2::SecurityGroup
    Properties: {GroupDescription: One, VpcId: !Ref Vpc}
  ToItself:
    Type: AWS::EC2::SecurityGroupEgress
    Properties: {GroupId: !Ref Group, IpProtocol: "-1", DestinationSecurityGroupId: !Ref Group}
  Gateway:
    Type: AWS::EC2::InternetGateway
    Condition: HasNat
  Attachment:
    Type: AWS::EC2::VPCGatewayAttachment
    Condition: HasNat
    Properties: {VpcId: !Ref Vpc, InternetGatewayId: !Ref Gateway}
  WayOut:
    Type: AWS::EC2::Route
    Condition: HasNat
    DependsOn: Attachment
    Properties:
      RouteTableId: !Ref Routes
      DestinationCidrBlock: 0.0.0.0/0
      GatewayId: !Ref Gateway
  Address:
    Type: AWS::EC2::EIP
    Condition: HasNat
    Properties: {Domain: vpc}
  NatGateway:
    Type: AWS::EC2::NatGateway
    Condition: HasNat
    Properties: {SubnetId: !Ref Subnet, AllocationId: !GetAtt Address.AllocationId}
Outputs:
  Group:
    Value: !Ref Group
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """An endpoint of this file's own: its stacks outlive a restart of it."""
    one = Endpoint(Path(tmp_path_factory.mktemp("stacks")))
    yield one
    one.down()


def nat(value):
    return [{"ParameterKey": "Nat", "ParameterValue": value}]


def standing(endpoint):
    """What of a network stands: how many of each."""
    ec2 = endpoint.client("ec2")
    return {
        "vpcs": len(ec2.describe_vpcs()["Vpcs"]) - 1,  # the default one
        "tables": len(ec2.describe_route_tables()["RouteTables"]) - 1,
        "endpoints": sum(
            one["State"] == "available" for one in ec2.describe_vpc_endpoints()["VpcEndpoints"]
        ),
        "gateways": len(ec2.describe_internet_gateways()["InternetGateways"]),
        "nats": sum(
            one["State"] == "available" for one in ec2.describe_nat_gateways()["NatGateways"]
        ),
        "addresses": len(ec2.describe_addresses()["Addresses"]),
    }


def test_a_network_is_made_and_changed(own):
    without = {"vpcs": 1, "tables": 2, "endpoints": 1, "gateways": 0, "nats": 0, "addresses": 0}
    with_nat = without | {"gateways": 1, "nats": 1, "addresses": 1}
    own.client("cloudformation").create_stack(StackName="net", TemplateBody=NETWORK)
    assert standing(own) == without
    stack = own.client("cloudformation").describe_stacks(StackName="net")["Stacks"][0]
    group = stack["Outputs"][0]["OutputValue"]
    found = own.client("ec2").describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
    pairs = [pair for rule in found["IpPermissionsEgress"] for pair in rule["UserIdGroupPairs"]]
    assert [pair["GroupId"] for pair in pairs] == [group]
    for value, wanted in (("yes", with_nat), ("no", without), ("yes", with_nat)):
        own.client("cloudformation").update_stack(
            StackName="net", TemplateBody=NETWORK, Parameters=nat(value)
        )
        assert standing(own) == wanted


def test_a_restart_brings_nothing_deleted_back_and_forgets_nothing(own):
    client = own.client("cloudformation")
    made = client.create_stack(StackName="store", TemplateBody=BUCKET)["StackId"]
    client.delete_stack(StackName="store")
    before = standing(own)
    own.down()
    own.up()
    client = own.client("cloudformation")
    gone = client.describe_stacks(StackName=made)["Stacks"][0]
    assert gone["StackStatus"] == "DELETE_COMPLETE"
    assert gone["Outputs"][0]["OutputValue"] == "one-that-goes"
    client.list_stack_resources(StackName=made)
    names = [one["Name"] for one in own.client("s3").list_buckets()["Buckets"]]
    assert "one-that-goes" not in names
    assert "name-that-goes" not in [one["Name"] for one in client.list_exports()["Exports"]]
    assert standing(own) == before and before["vpcs"] == 1, "of the test before this one"
    client.delete_stack(StackName="net")
    assert standing(own) == dict.fromkeys(before, 0)


def test_a_resource_that_a_condition_leaves_out_is_in_no_list(own):
    client = own.client("cloudformation")
    client.create_stack(StackName="listed", TemplateBody=NETWORK)
    found = client.list_stack_resources(StackName="listed")["StackResourceSummaries"]
    assert {one["LogicalResourceId"] for one in found} == {
        *("Vpc", "Subnet", "Routes", "SubnetRoutes", "Endpoint", "Group", "ToItself")
    }
    client.delete_stack(StackName="listed")


def test_what_moto_lacks_is_filled_also_after_it_has_listed_what_it_has():
    """moto lists its models once in a process: an earlier stack must not hide the additions."""
    code = (
        "from moto.cloudformation import parsing; parsing.get_model_map()\n"
        "from local_sagemaker.moto_services import cloudformation_gaps as gaps; gaps.fill()\n"
        "assert 'AWS::EC2::SecurityGroupEgress' in parsing.get_model_map()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
