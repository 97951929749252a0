"""What AWS is asked, against moto's EC2, and Service Quotas' answers in its own form."""

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from moto import mock_aws
from test_preflight_rules import job

from workshop.account.preflight import all_ok, ask, asking
from workshop.jobs.session import Session

ACCOUNT = "0" * 12


@pytest.fixture(scope="module")
def session():
    """A session whose calls moto answers, in this process."""
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        patch.setenv("MOTO_ACCOUNT_ID", ACCOUNT)
        yield Session("aws", "tests", _boto_session())


def _boto_session():
    return boto3.Session("key", "secret", region_name="us-east-1")


class Quotas(Session):
    """A session whose Service Quotas answers with these quotas, in two pages."""

    def __init__(self, **quotas: float) -> None:
        super().__init__("aws", "tests", _boto_session())
        others = {"ml.t3.medium for notebook instance usage": 1.0, "Total number of models": 9.0}
        self.quotas = [
            {"QuotaName": name, "Value": value} for name, value in (others | quotas).items()
        ]
        self.calls = 0

    def client(self, service: str):
        self.calls += 1
        client = self.boto_session.client(service)
        stubber = Stubber(client)
        stubber.add_response("list_aws_default_service_quotas", {"Quotas": self.quotas[:1]})
        first = {"Quotas": self.quotas[:2], "NextToken": "more"}
        stubber.add_response("list_service_quotas", first, {"ServiceCode": "sagemaker"})
        stubber.add_response("list_service_quotas", {"Quotas": self.quotas[2:]})
        stubber.activate()
        return client


P4D = {"instance_type": "ml.p4d.24xlarge"}
SPOT = {"use_spot": True, "checkpoint_s3_uri": "s3://b/c"}
USUAL = {"ml.c5.xlarge for training job usage": 4}
ALL = "Number of instances across all training jobs"


@pytest.mark.parametrize(
    ("changes", "quotas", "ok", "text"),
    [
        ({}, USUAL, [True], "is 4; this job takes 2"),
        (P4D, {"ml.p4d.24xlarge for training job usage": 0}, [False], "is 0 in us-east-1"),
        (SPOT, {"ml.c5.xlarge for spot training job usage": 1}, [False], "for spot training"),
        ({"instance_count": 4}, {ALL: 3}, [True, False], f'"{ALL}" is 3 in us-east-1'),
        ({"instance_type": "ml.m5.large"}, {}, [False], "not seem to offer ml.m5.large"),
    ],
)
def test_what_the_quotas_allow(changes, quotas, ok, text):
    findings = list(asking.quota(job(**changes), Quotas(**(USUAL | quotas))))
    assert [row.ok for row in findings] == ok and text in findings[-1].reason
    if "The quota" in findings[-1].reason:
        assert "Request an increase" in findings[-1].remedy
        assert "12 to 24 hours" in findings[-1].remedy
        assert findings[-1].source.startswith("https://")


def test_quotas_are_read_once_for_all_jobs_of_a_session():
    session = Quotas(**{"ml.c5.xlarge for training job usage": 4})
    assert list(asking.quota(job(), session)) == list(asking.quota(job(), session))
    assert session.calls == 1


def test_a_question_without_an_answer_is_said_and_fails_nothing(session):
    findings = ask(job(), session)  # moto's Service Quotas has no SageMaker
    assert [row.topic for row in findings if row.ok is None][:1] == ["quota"]
    assert "Could not be checked: List" in findings[0].reason


def test_missing_permission_is_named(monkeypatch):
    def refuse(_, operation, __):
        raise ClientError({"Error": {"Code": "AccessDeniedException"}}, operation)

    monkeypatch.setattr(BaseClient, "_make_api_call", refuse)
    findings = ask(job(), Session("aws", "tests", _boto_session()))
    assert all_ok(findings) and [row.ok for row in findings] == [None]
    assert "(AccessDeniedException)" in findings[0].reason


@pytest.fixture(scope="module")
def network(session):
    """A VPC with two subnets, /28 in one zone and /20 in another; ids by name."""
    ec2 = session.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]

    def subnet(cidr, zone):
        made = ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=zone)
        return made["Subnet"]["SubnetId"]

    def group(name, vpc, peer=None, *ways):
        made = ec2.create_security_group(VpcId=vpc, GroupName=name, Description="x")["GroupId"]
        rule = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": peer or made}]}]
        for way in ways:
            way(GroupId=made, IpPermissions=rule)
        return made

    come, go = ec2.authorize_security_group_ingress, ec2.authorize_security_group_egress
    open_ = group("open", vpc, None, come, go)
    other = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    return {
        "small": subnet("10.0.0.0/28", "us-east-1a"),
        "large": subnet("10.0.16.0/20", "us-east-1b"),
        "no such": "subnet-0123456789abcdef0",
        "open": open_,
        "closed": group("closed", vpc),
        "inward": group("inward", vpc, None, come),  # and out to all addresses, as every new group
        "named": group("named", vpc, open_, come),  # lets another group's members in, not its own
        "elsewhere": group("elsewhere", other),
    }


@pytest.mark.parametrize(
    ("subnets", "group", "changes", "ok", "text"),
    [
        (["large"], "open", {}, True, "free addresses in us-east-1b"),
        # The small one has 11: an instance needs 2, and 5 if it has EFA.
        (["small"], "open", {"instance_count": 5}, True, ""),
        (["small"], "open", {"instance_count": 6}, False, "11 free addresses; 6 instances need 2"),
        (["small"], "open", P4D, True, ""),
        (["small"], "open", P4D | {"instance_count": 3}, False, "3 instances need 5 each"),
        (["large"], "closed", {}, False, "wait for each other until max_run"),
        (["large"], "named", {}, False, "wait for each other until max_run"),
        (["large"], "closed", {"instance_count": 1}, True, ""),
        (["large"], "inward", {}, True, ""),
        (["large"], "inward", P4D, False, "lets traffic out to the group itself, as EFA needs"),
        (["large"], "elsewhere", {}, False, "another VPC"),
        (["small", "large"], "open", {}, True, ""),
        (["small", "large"], "open", P4D, False, "us-east-1a, us-east-1b"),
        (["no such"], "open", {}, False, "does not exist"),
    ],
)
def test_a_network(session, network, subnets, group, changes, ok, text):
    ids = {
        "subnets": tuple(network[name] for name in subnets),
        "security_group_ids": (network[group],),
    }
    (finding,) = asking.network(job(**(ids | changes)), session)
    assert finding.ok is ok and text in finding.reason
    assert bool(finding.remedy) is not ok
