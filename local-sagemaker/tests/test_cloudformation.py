"""What the emulator adds to moto's CloudFormation: changed networks, and stacks that are gone.

What the kit's own network makes: tests/workshop/account/test_stacks_network.py.
"""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

NETWORK = (Path(__file__).parent / "templates" / "network.yaml").read_text()
ALWAYS = {"Bucket", "Vpc", "Subnet", "Routes", "SubnetRoutes", "Endpoint"}


@pytest.fixture(autouse=True)
def what_moto_lacks():
    import_module("local_sagemaker.moto_backend.cloudformation")  # slow


def standing(now) -> dict[str, int]:
    """What of a network stands: how many of each."""
    ec2 = now.client("ec2")
    endpoints = ec2.describe_vpc_endpoints()["VpcEndpoints"]
    return {
        "vpcs": len(ec2.describe_vpcs()["Vpcs"]) - 1,  # the default one
        "tables": len(ec2.describe_route_tables()["RouteTables"]) - 1,
        "endpoints": sum(endpoint["State"] == "available" for endpoint in endpoints),
        "gateways": len(ec2.describe_internet_gateways()["InternetGateways"]),
    }


def test_a_network_outlives_a_restart_and_a_deleted_stack_does_not_come_back(life):
    without = {"vpcs": 1, "tables": 2, "endpoints": 1, "gateways": 0}
    with life() as now:
        client = now.client("cloudformation")
        made = client.create_stack(StackName="net", TemplateBody=NETWORK)["StackId"]
        assert standing(now) == without
        now.save()
    with life() as now:
        client = now.client("cloudformation")
        listed = client.list_stack_resources(StackName="net")["StackResourceSummaries"]
        assert {resource["LogicalResourceId"] for resource in listed} == ALWAYS  # and no Gateway
        for value, gateways in (("yes", 1), ("no", 0), ("yes", 1)):
            nat = [{"ParameterKey": "Nat", "ParameterValue": value}]
            client.update_stack(StackName="net", TemplateBody=NETWORK, Parameters=nat)
            assert standing(now) == without | {"gateways": gateways}
        now.save()
    with life() as now:
        assert standing(now) == without | {"gateways": 1}
        key = {"bucket": "one-that-goes", "key": "key"}
        now.state.objects.put(**key, versioned=False, segments=[], etag="", fields={})
        now.client("cloudformation").delete_stack(StackName="net")
        # As on AWS, a bucket that is not empty stays.
        assert [bucket["Name"] for bucket in now.s3.list_buckets()["Buckets"]] == ["one-that-goes"]
        now.state.objects.remove(**key, version="null")
        now.s3.delete_bucket(Bucket="one-that-goes")
        now.save()
    with life() as now:
        client = now.client("cloudformation")
        (gone,) = client.describe_stacks(StackName=made)["Stacks"]
        assert gone["StackStatus"] == "DELETE_COMPLETE"
        assert gone["Outputs"][0]["OutputValue"] == "one-that-goes"
        client.list_stack_resources(StackName=made)
        assert now.s3.list_buckets()["Buckets"] == []
        assert client.list_exports()["Exports"] == []
        assert standing(now) == dict.fromkeys(without, 0)


def test_a_change_set_gives_its_stack_outputs_and_exports(life):
    """As `aws cloudformation deploy` makes and changes stacks."""
    with life() as now:
        client = now.client("cloudformation")
        for kind, value, expected in (
            ("CREATE", "Ref Bucket", "one-that-goes"),
            ("UPDATE", "Ref AWS::StackName", "net"),
        ):
            named = {"StackName": "net", "ChangeSetName": f"changes-{kind}"}
            template = NETWORK.replace("Ref Bucket", value)
            client.create_change_set(**named, TemplateBody=template, ChangeSetType=kind)
            client.execute_change_set(**named)
            (stack,) = client.describe_stacks(StackName="net")["Stacks"]
            outputs = [output["OutputValue"] for output in stack.get("Outputs", [])]
            assert outputs == [expected]
            exports = client.list_exports()["Exports"]
            named = [(export["Name"], export["Value"]) for export in exports]
            assert named == [("name-that-goes", expected)]


@pytest.mark.parametrize(
    ("rules", "egress"),
    [
        ("", [("-1", None, "0.0.0.0/0")]),
        (
            "[{IpProtocol: tcp, FromPort: 443, ToPort: 443, CidrIp: 10.0.0.0/8},"
            " {IpProtocol: '-1', CidrIpv6: '::/0'}]",
            [("tcp", 443, "10.0.0.0/8"), ("-1", None, "::/0")],
        ),
        (
            "[{IpProtocol: tcp, FromPort: 80, ToPort: 80, DestinationPrefixListId: pl-1}]",
            [("tcp", 80, "pl-1")],
        ),
    ],
)
def test_a_group_lets_out_what_its_template_says(life, rules, egress):
    """With rules of its own AWS leaves out the one that allows everything."""
    template = (
        "Resources: {Group: {Type: 'AWS::EC2::SecurityGroup', Properties: "
        f"{{GroupDescription: one, SecurityGroupEgress: {rules or '[]'}}}}}}}"
    )
    with life() as now:
        now.client("cloudformation").create_stack(StackName="one", TemplateBody=template)
        named = [{"Name": "description", "Values": ["one"]}]
        (group,) = now.client("ec2").describe_security_groups(Filters=named)["SecurityGroups"]
        actual = [
            (rule["IpProtocol"], rule.get("FromPort"), *target.values())
            for rule in group["IpPermissionsEgress"]
            for target in (*rule["IpRanges"], *rule["Ipv6Ranges"], *rule["PrefixListIds"])
        ]
        assert actual == egress


def test_what_moto_lacks_is_filled_also_after_it_has_listed_what_it_has():
    """moto lists its models once in a process: an earlier stack must not hide the additions."""
    code = (
        "from moto.cloudformation import parsing; parsing.get_model_map()\n"
        "import local_sagemaker.moto_backend.cloudformation\n"
        "assert 'AWS::EC2::SecurityGroupEgress' in parsing.get_model_map()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
