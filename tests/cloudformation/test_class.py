"""A class in one VPC: no seat can touch another; what instructor and learners may."""

import json
from types import SimpleNamespace

import boto3
import pytest
import stacks_harness
from aws_calls import ACCOUNT, REGION, SAGEMAKER, Call, World
from deployed_policies import seat_of
from linting_helpers import as_document, policy_findings
from policy_evaluator import ALLOWED, Request, decision
from test_what_is_denied import ENDED, attempts, let_through, own_ways, sagemaker

from workshop.account import classroom
from workshop.account.preflight.facts import sagemaker_regions

ROLE = f"arn:aws:iam::{ACCOUNT}:role"
STACK = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack"
EC2 = f"arn:aws:ec2:{REGION}:{ACCOUNT}"
SEATS = "s0,s01,s02,ann"  # the first one's name is how two others begin


@pytest.fixture(scope="module", params=[SEATS, pytest.param("20", marks=pytest.mark.soak)])
def deployed(request):
    """The class, made by the command's own function. calls: those of looking, pricing, cleaning."""
    with pytest.MonkeyPatch.context() as patch, stacks_harness.aws(patch):
        patch.setattr(classroom, "AT_ONCE", 1)  # moto in this process is no server
        session = stacks_harness.session("class")
        names = classroom.seat_names(request.param)
        classroom.up(session, names, {"Email": "a@b.org"}, log=lambda _: None)
        seats = {name: seat_of(stacks_harness.session(name), classroom.PER_SEAT) for name in names}
        policies, trusts = managed(session), trusted(session)
        calls = []
        watched = stacks_harness.recording("class", calls)
        classroom.status(watched)
        classroom.costs(watched)
        reports, failed = classroom.clean(watched, log=lambda _: None)
        assert not failed and all(report.nothing_left for report in reports.values())
        left = session.client("cloudformation").describe_stacks()["Stacks"]
        assert left == [], "asked of CloudFormation itself"
        yield SimpleNamespace(
            seats=seats, policies=policies, trusts=trusts, calls=calls, reports=reports
        )


def managed(session):
    """ "InstructorPolicy" -> its document."""
    iam, result = session.client("iam"), {}
    for row in iam.list_policies(Scope="Local")["Policies"]:
        which = {"PolicyArn": row["Arn"], "VersionId": row["DefaultVersionId"]}
        document = iam.get_policy_version(**which)["PolicyVersion"]["Document"]
        result[row["PolicyName"].split("-")[3]] = as_document(document)
    return result


def trusted(session):
    """Seat -> who may take on its notebook's role."""
    result = {}
    for role in session.client("iam").list_roles()["Roles"]:
        _, seat, _, kind, *_ = role["RoleName"].split("-")
        if kind == "NotebookRole":
            result[seat] = as_document(role["AssumeRolePolicyDocument"])
    return result


def test_seats_share_one_vpc_and_nothing_else(deployed):
    count = len(deployed.seats)
    assert count >= 4 and list(deployed.reports) == [*deployed.seats, classroom.CLASS]
    for output in ("BucketName", "TrainingRoleArn", "SubnetId", "ServingSubnetId"):
        assert len({seat.outputs[output] for seat in deployed.seats.values()}) == count
    groups = {seat.outputs["SecurityGroupId"] for seat in deployed.seats.values()}
    assert len(groups) == count, "a group of its own: no rank of a neighbour gets in"


def test_no_seat_can_touch_another(deployed):
    """Every ordered pair, in each way that there is; with its own each can do the same."""
    for role in deployed.seats.values():
        assert [row for row in own_ways(role) if role.refused(*row)] == []
        for other in deployed.seats.values():
            if role is not other:
                assert let_through(role, attempts(role, other)) == [], (role.name, other.name)


# The instructor


def asked_for(deployed):
    """The instructor's requests: recorded calls, and what CloudFormation does in their name."""
    world, result = World(), []
    everything = {"workshop": "data-parallel"}
    for call in (Call(*row) for row in deployed.calls):
        if (
            call.request.get("StackName", "").endswith("-shared")
            and call.operation == "DeleteStack"
        ):
            continue  # the administrator's, who made it
        result += world.permissions_for(call)
    bucket = f"arn:aws:s3:::workshop-s01-{ACCOUNT}-{REGION}"
    for action in ("iam:DeleteRole", "iam:DeleteRolePolicy", "iam:GetRole"):
        result.append(Request(action, f"{ROLE}/workshop-s01-roles-TrainingRole-A1"))
    result += [Request(action, bucket) for action in ("s3:DeleteBucket", "s3:DeleteBucketPolicy")]
    for action, kind in (
        ("DeleteSubnet", "subnet"),
        ("DisassociateRouteTable", "route-table"),
        ("DeleteSecurityGroup", "security-group"),
        ("RevokeSecurityGroupEgress", "security-group"),
        ("RevokeSecurityGroupIngress", "security-group"),
    ):
        context = {f"aws:ResourceTag/{key}": value for key, value in everything.items()}
        result.append(Request(f"ec2:{action}", f"{EC2}:{kind}/x", context))
    return result


def instructor(deployed, *requests):
    return [
        row for row in requests if decision([deployed.policies["InstructorPolicy"]], row) != ALLOWED
    ]


def test_the_instructor_may_look_price_and_clean(deployed):
    assert len(deployed.calls) > 20 * len(deployed.seats)
    assert instructor(deployed, *asked_for(deployed)) == []
    others = dict.fromkeys(("DeleteTrainingJob", "UpdateTrainingJob"), "TrainingJob")
    for operation, word in (ENDED | others).items():
        tags = {"workshop": "data-parallel", "seat": "s01"}
        assert instructor(deployed, *sagemaker(operation, word, "workshop-s01-x", tags)) == []
    notebook = f"{SAGEMAKER}:notebook-instance/workshop-s01"
    tagged = {"aws:ResourceTag/workshop": "data-parallel"}
    assert instructor(deployed, Request("sagemaker:StopNotebookInstance", notebook, tagged)) == []


def test_the_instructor_may_not(deployed):
    role = f"{ROLE}/workshop-s01-roles-A"
    made = ("CreateRole", "PutRolePolicy", "AttachRolePolicy", "UpdateAssumeRolePolicy", "PassRole")
    tried_requests = [
        *(Request(f"iam:{row}", role) for row in made),
        Request("iam:DeleteRole", f"{ROLE}/Admin"),
        Request("sts:AssumeRole", f"{ROLE}/workshop-s01-roles-NotebookRole-A"),
        Request("cloudformation:DeleteStack", f"{STACK}/workshop-class-shared/1"),
        Request("cloudformation:DeleteStack", f"{STACK}/payroll/1"),
        Request("cloudformation:CreateStack", f"{STACK}/workshop-s01-x/1"),
        Request("s3:GetObject", f"arn:aws:s3:::workshop-s01-{ACCOUNT}-{REGION}/data/x"),
        Request("s3:DeleteObject", "arn:aws:s3:::payroll/x"),
        Request("sagemaker:DeleteEndpoint", f"{SAGEMAKER}:endpoint/workshop-s01-x"),  # no tags
        Request("sagemaker:DeleteEndpoint", f"{SAGEMAKER}:endpoint/payroll"),
        Request("sagemaker:CreateTrainingJob", f"{SAGEMAKER}:training-job/workshop-s01-x"),
        Request("ec2:DeleteSubnet", f"{EC2}:subnet/untagged"),
        Request("ec2:DeleteVpc", f"{EC2}:vpc/any"),
        Request("ec2:RunInstances", "*"),
        Request("ce:UpdateCostAllocationTagsStatus", "*"),
    ]
    assert instructor(deployed, *tried_requests) == tried_requests


def test_the_instructors_policy_fits(deployed):
    """6,144 characters without white space: IAM's limit of a managed policy."""
    for document in deployed.policies.values():
        text = "".join(json.dumps(document).split())
        for region in sagemaker_regions():  # their names are of different lengths
            partition = boto3.Session().get_partition_for_region(region)
            there = text.replace(REGION, region).replace("arn:aws:", f"arn:{partition}:")
            assert len(there) <= 6144, (region, len(there))


def test_parliament_finds_nothing_in_the_classs_policies(deployed):
    documents = dict(deployed.policies)
    (jobs_policy,) = [
        row for row in deployed.seats["s01"].policies["TrainingRole"] if "ec2:Subnet" in str(row)
    ]
    newer = "sagemaker:DeleteTrainingJob"  # botocore has it, parliament 1.6.4 does not yet
    result = {
        name: [row for row in policy_findings(document) if newer not in row]
        for name, document in {**documents, "jobs-in-the-subnets": jobs_policy}.items()
    }
    assert result == {
        name: [] for name in ("InstructorPolicy", "LearnerPolicy", "jobs-in-the-subnets")
    }


# The learners


def test_a_learner_takes_the_role_in_the_tag_and_no_other(deployed):
    policy = [deployed.policies["LearnerPolicy"]]

    def may(seat, role):
        tags = {"aws:PrincipalTag/seat": seat} if seat else {}
        return decision(policy, Request("sts:AssumeRole", f"{ROLE}/{role}", tags)) == ALLOWED

    assert may("s01", "workshop-s01-roles-NotebookRole-A1B2")
    assert not may("s01", "workshop-s02-roles-NotebookRole-A1B2")
    assert not may("s0", "workshop-s01-roles-NotebookRole-A1B2")
    assert not may("*", "workshop-s01-roles-NotebookRole-A1B2"), "a tag is no pattern"
    assert not may("", "workshop-s01-roles-NotebookRole-A1B2")
    assert not may("s01", "workshop-s01-roles-TrainingRole-A1B2")


def test_the_role_looks_at_the_tag_as_well(deployed):
    """Or whoever in the account may assume any role could take on a seat's."""
    assert set(deployed.trusts) == set(deployed.seats)
    for seat, document in deployed.trusts.items():
        (people,) = [row for row in document["Statement"] if "AWS" in row["Principal"]]
        assert people["Principal"] == {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
        assert people["Condition"] == {"StringEquals": {"aws:PrincipalTag/seat": seat}}
