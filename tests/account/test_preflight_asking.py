"""What AWS is asked, against moto's ECR and EC2, and Service Quotas' answers in its own form."""

import boto3
import pytest
from botocore.stub import Stubber
from jobs_helpers import job, pytorch
from moto import mock_aws

from workshop.account.preflight import all_ok, ask, asking
from workshop.account.preflight.derived import Job
from workshop.jobs.session import Session

ACCOUNT = "0" * 12
MANIFEST = '{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json"}'
REGISTRY = f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com"


@pytest.fixture
def session(monkeypatch):
    """A session whose calls moto answers, in this process."""
    monkeypatch.setenv("MOTO_ACCOUNT_ID", ACCOUNT)
    with mock_aws():
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


def quota(configuration, **quotas: float):
    """The findings about quotas."""
    return list(asking.quota(Job(configuration), Quotas(**quotas)))


def test_a_quota_that_suffices_passes():
    (found,) = quota(job(), **{"ml.c5.xlarge for training job usage": 4})
    assert found.ok is True and "is 4; this job takes 2" in found.reason


def test_a_p4d_quota_of_zero_is_told_with_the_way_to_get_more():
    p4d = pytorch(instance_type="ml.p4d.24xlarge")
    (found,) = quota(p4d, **{"ml.p4d.24xlarge for training job usage": 0})
    assert found.ok is False
    assert '"ml.p4d.24xlarge for training job usage" is 0 in us-east-1' in found.reason
    assert "Request an increase" in found.remedy and "12 to 24 hours" in found.remedy
    assert found.source.startswith("https://")


def test_spot_and_warm_pools_have_quotas_of_their_own():
    usual = {"ml.c5.xlarge for training job usage": 4}
    spot = job(use_spot=True, checkpoint_s3_uri="s3://b/c")
    (found,) = quota(spot, **usual, **{"ml.c5.xlarge for spot training job usage": 1})
    assert found.ok is False and "spot training job usage" in found.reason
    found = quota(job(keep_alive=60), **usual, **{"ml.c5.xlarge for training warm pool usage": 0})
    assert [one.ok for one in found] == [True, False] and "warm pool" in found[1].reason


def test_all_instances_of_the_account_have_a_quota_too():
    usual = {"ml.c5.xlarge for training job usage": 20}
    found = quota(job(instance_count=8), **usual, **{asking.ALL_INSTANCES: 4})
    assert [one.ok for one in found] == [True, False] and "across all training jobs" in found[
        1
    ].reason


def test_a_type_without_a_quota_is_not_in_the_region():
    (found,) = quota(job(), **{"ml.m5.large for training job usage": 4})
    assert found.ok is False and "does not seem to offer ml.c5.xlarge" in found.reason


def test_quotas_are_read_once_for_all_jobs_of_a_session():
    session = Quotas(**{"ml.c5.xlarge for training job usage": 4})
    assert list(asking.quota(Job(job()), session)) == list(asking.quota(Job(job()), session))
    assert session.calls == 1


def test_a_question_without_an_answer_is_said_and_fails_nothing(session):
    found = ask(job(), session)  # moto's Service Quotas has no SageMaker
    assert [one.what for one in found if one.ok is None][:1] == ["quota"]
    assert "Could not be checked: List" in found[0].reason


def test_missing_permission_is_named(monkeypatch):
    from botocore.client import BaseClient
    from botocore.exceptions import ClientError

    def refuse(_, operation, __):
        raise ClientError({"Error": {"Code": "AccessDeniedException"}}, operation)

    monkeypatch.setattr(BaseClient, "_make_api_call", refuse)
    found = ask(job(), Session("aws", "tests", _boto_session()))
    assert all_ok(found) and [one.ok for one in found] == [None, None]
    assert "may not call DescribeImages (AccessDeniedException)" in found[1].reason


def test_an_image_of_ones_own_is_looked_for(session):
    ecr = session.client("ecr")
    ecr.create_repository(repositoryName="horovod")
    ecr.put_image(repositoryName="horovod", imageManifest=MANIFEST, imageTag="1")
    (found,) = asking.image(Job(job(image_uri=f"{REGISTRY}/horovod:1")), session)
    assert found.ok is True
    (found,) = asking.image(Job(job(image_uri=f"{REGISTRY}/horovod:2")), session)
    assert found.ok is False and "ImageNotFoundException" in found.reason
    (found,) = asking.image(Job(job(image_uri=f"{REGISTRY}/horovood:1")), session)
    assert found.ok is False and "RepositoryNotFoundException" in found.reason
    (found,) = asking.image(Job(job(image_uri="docker.io/library/python:3")), session)
    assert found.ok is None


def test_the_local_endpoint_needs_no_image(session):
    session.target = "local"
    (found,) = asking.image(Job(job()), session)
    assert found.ok is None and "pulls no image" in found.reason


@pytest.fixture
def network(session):
    """A VPC with two subnets, /28 in one zone and /20 in another; ids by name."""
    ec2 = session.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]

    def subnet(cidr, zone):
        made = ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=zone)
        return made["Subnet"]["SubnetId"]

    def group(name, vpc):
        made = ec2.create_security_group(VpcId=vpc, GroupName=name, Description="x")
        return made["GroupId"]

    open_, closed = group("open", vpc), group("closed", vpc)
    rule = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": open_}]}]
    ec2.authorize_security_group_ingress(GroupId=open_, IpPermissions=rule)
    inward = group("inward", vpc)  # and out to all addresses, as every new group
    itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": inward}]}]
    ec2.authorize_security_group_ingress(GroupId=inward, IpPermissions=itself)
    ec2.authorize_security_group_egress(GroupId=open_, IpPermissions=rule)
    named = group("named", vpc)  # lets another group's members in, and its own not
    ec2.authorize_security_group_ingress(GroupId=named, IpPermissions=rule)
    other = ec2.create_vpc(CidrBlock="10.1.0.0/16")["Vpc"]["VpcId"]
    return {
        "small": subnet("10.0.0.0/28", "us-east-1a"),
        "large": subnet("10.0.16.0/20", "us-east-1b"),
        "open": open_,
        "closed": closed,
        "inward": inward,
        "named": named,
        "elsewhere": group("elsewhere", other),
    }


def seen(session, subnets, group, **changes):
    """The one finding about a network."""
    changes = {"subnets": tuple(subnets), "security_group_ids": (group,)} | changes
    (found,) = asking.network(Job(job(**changes)), session)
    return found


def test_a_network_with_room_passes(session, network):
    found = seen(session, [network["large"]], network["open"])
    assert found.ok is True and "free addresses in us-east-1b" in found.reason


def test_a_subnet_without_room_is_told(session, network):
    """The small one has 11: an instance needs 2, and 5 if it has EFA."""
    where = (session, [network["small"]], network["open"])
    assert seen(*where, instance_count=5).ok is True
    found = seen(*where, instance_count=6)
    assert found.ok is False and "11 free addresses; 6 instances need 2 each" in found.reason
    assert seen(*where, instance_count=2, instance_type="ml.p4d.24xlarge").ok is True
    found = seen(*where, instance_count=3, instance_type="ml.p4d.24xlarge")
    assert found.ok is False and "3 instances need 5 each" in found.reason


def test_a_group_that_keeps_its_members_apart_is_told(session, network):
    for group in ("closed", "named"):
        found = seen(session, [network["large"]], network[group])
        assert found.ok is False and "wait for each other until max_run" in found.reason
    assert seen(session, [network["large"]], network["closed"], instance_count=1).ok is True


def test_efa_needs_a_rule_out_to_the_group_itself(session, network):
    where = (session, [network["large"]], network["inward"])
    assert seen(*where).ok is True
    found = seen(*where, instance_type="ml.p4d.24xlarge")
    assert found.ok is False and "lets traffic out to the group itself" in found.reason
    assert "outbound rule" in found.remedy and found.source.startswith("https://")


def test_a_group_of_another_vpc_is_told(session, network):
    found = seen(session, [network["large"]], network["elsewhere"])
    assert found.ok is False and "another VPC" in found.reason


def test_efa_over_two_zones_is_told(session, network):
    both = [network["small"], network["large"]]
    assert seen(session, both, network["open"]).ok is True
    found = seen(session, both, network["open"], instance_type="ml.p4d.24xlarge")
    assert found.ok is False and "us-east-1a, us-east-1b" in found.reason


def test_a_subnet_that_does_not_exist_is_told(session, network):
    found = seen(session, ["subnet-0123456789abcdef0"], network["open"])
    assert found.ok is False and "does not exist" in found.reason
