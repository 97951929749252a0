"""A class of 20 seats in one VPC: no seat can touch another; what instructor and learners may."""

import dataclasses
import json
from types import SimpleNamespace

import pytest
import stacks_harness
from aws_calls import ACCOUNT, REGION, SAGEMAKER, Call, World, in_the_vpc
from deployed_policies import seat_of
from linting_helpers import policy_findings
from policy_evaluator import ALLOWED, Request, decision
from test_what_is_denied import let_through, sagemaker, training

from workshop.account import classroom

COUNT = 20
ROLE = f"arn:aws:iam::{ACCOUNT}:role"


@pytest.fixture(scope="module")
def room():
    """The class, made by the command's own function. calls: those of looking, pricing, cleaning."""
    with pytest.MonkeyPatch.context() as patch, stacks_harness.aws(patch):
        patch.setattr(classroom, "AT_ONCE", 1)  # moto in this process is no server
        session = stacks_harness.session("class")
        names = classroom.up(
            session, classroom.seat_names(str(COUNT)), {"Email": "a@b.org"}, say=lambda _: None
        )
        seats = {name: seat_of(stacks_harness.session(name), classroom.PER_SEAT) for name in names}
        policies, trusts = managed(session), trusted(session)
        calls = []
        watched = recording(session, calls)
        classroom.status(watched)
        classroom.costs(watched)
        reports, failed = classroom.clean(watched, say=lambda _: None)
        assert not failed and all(report.nothing_left for report in reports.values())
        left = session.client("cloudformation").describe_stacks()["Stacks"]
        assert left == [], "asked of CloudFormation itself"
        yield SimpleNamespace(
            seats=seats, policies=policies, trusts=trusts, calls=calls, reports=reports
        )


def managed(session):
    """ "InstructorPolicy" -> its document."""
    iam, found = session.client("iam"), {}
    for one in iam.list_policies(Scope="Local")["Policies"]:
        version = iam.get_policy_version(PolicyArn=one["Arn"], VersionId=one["DefaultVersionId"])[
            "PolicyVersion"
        ]
        document = version["Document"]
        name = one["PolicyName"].split("-")[3]
        found[name] = document if isinstance(document, dict) else json.loads(document)
    return found


def trusted(session):
    """Seat -> who may take on its notebook's role."""
    found = {}
    for role in session.client("iam").list_roles()["Roles"]:
        _, seat, _, kind, *_ = role["RoleName"].split("-")
        if kind == "NotebookRole":
            document = role["AssumeRolePolicyDocument"]
            found[seat] = document if isinstance(document, dict) else json.loads(document)
    return found


def recording(session, calls):
    """The session with clients that note their calls."""

    def client(service):
        found = stacks_harness.shared().client(service)
        call = found._make_api_call

        def noted(operation, request):
            calls.append(Call(service, operation, request))
            return call(operation, request)

        found._make_api_call = noted
        return found

    return SimpleNamespace(target="local", seat="class", region=REGION, client=client)


def test_twenty_seats_share_one_vpc_and_nothing_else(room):
    assert len(room.seats) == COUNT and list(room.reports) == [*room.seats, classroom.CLASS]
    for output in ("BucketName", "TrainingRoleArn", "SubnetId", "ServingSubnetId"):
        assert len({seat.outputs[output] for seat in room.seats.values()}) == COUNT
    groups = {seat.outputs["SecurityGroupId"] for seat in room.seats.values()}
    assert len(groups) == COUNT, "a group of its own: no rank of a neighbour gets in"


def of_the_class(own, other):
    """What -> (role, requests): the ways from one seat of a class to another."""
    tags = {"workshop": "data-parallel", "seat": other.name}
    name, bucket = f"workshop-{other.name}-x", f"arn:aws:s3:::{other.outputs['BucketName']}"
    job = {"name": f"workshop-{own.name}-x", "tags": {**tags, "seat": own.name}}
    theirs = other.outputs["TrainingRoleArn"]
    logs = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group:/aws/sagemaker/TrainingJobs:log-stream"
    found = {
        f"{operation} of {other.name}": ("NotebookRole", sagemaker(operation, word, name, tags))
        for operation, word in (
            ("StopTrainingJob", "TrainingJob"),
            ("DescribeTrainingJob", "TrainingJob"),
            ("StopTransformJob", "TransformJob"),
            ("DeleteEndpoint", "Endpoint"),
            ("DeleteEndpointConfig", "EndpointConfig"),
            ("DeleteModel", "Model"),
        )
    }
    for role in ("NotebookRole", "TrainingRole"):
        for action, resource in (
            ("s3:ListBucket", bucket),
            ("s3:GetObject", f"{bucket}/data/x"),
            ("s3:PutObject", f"{bucket}/jobs/x"),
            ("logs:GetLogEvents", f"{logs}:{name}/algo-1"),
            ("logs:PutLogEvents", f"{logs}:{name}/algo-1"),
            ("sts:AssumeRole", theirs),
        ):
            found[f"{role}: {action}"] = (role, [Request(action, resource)])
    found["its role"] = ("NotebookRole", World().asked(training(role=theirs, **job)))
    stack = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/workshop-{other.name}-roles/1"
    found["its stacks"] = ("NotebookRole", [Request("cloudformation:DescribeStacks", stack)])
    for request in in_the_vpc(other.outputs):
        if request.context:
            found[f"{request.action} {request.resource}"] = ("TrainingRole", [request])
    return found


def test_no_seat_can_touch_another(room):
    """Every one of the 380 ordered pairs, in each way that there is."""
    through, tried = {}, 0
    for own in room.seats.values():
        for other in room.seats.values():
            if own is not other:
                ways = of_the_class(own, other)
                tried += len(ways)
                if got := let_through(own, ways):
                    through[own.name, other.name] = got
    assert through == {}
    assert tried >= COUNT * (COUNT - 1) * 20


def test_each_can_do_the_same_with_its_own(room):
    """Or the refusals above would be worth nothing."""
    for seat in room.seats.values():
        tags = {"workshop": "data-parallel", "seat": seat.name}
        job = training(f"workshop-{seat.name}-x", tags, role=seat.outputs["TrainingRoleArn"])
        assert seat.refused("NotebookRole", World().asked(job)) == []
        assert seat.refused("TrainingRole", in_the_vpc(seat.outputs)) == []


@pytest.mark.parametrize(
    ("change", "way"),
    [
        ("any subnet", "ec2:DeleteNetworkInterface"),
        ("any group", "ec2:CreateNetworkInterface"),
        ("a prefix without its hyphen", ""),
    ],
)
def test_a_hole_between_seats_would_be_found(room, change, way):
    seats = list(room.seats.values())
    own, other = seats[0], seats[1]
    if change == "any subnet":
        old, new = '"ArnEquals"', '"ArnNotEquals"'
    elif change == "any group":
        old, new = own.outputs["SecurityGroupId"], "*"
    else:
        own = dataclasses.replace(own, name="s0")  # whose name the other's begins with
        old, new = "workshop-s01-", "workshop-s0*"
    policies = {
        role: [json.loads(json.dumps(one).replace(old, new)) for one in documents]
        for role, documents in own.policies.items()
    }
    worse = dataclasses.replace(own, policies=policies)
    got = let_through(worse, of_the_class(worse, other))
    assert got and any(one.startswith(way) for one in got)


# The instructor


def asked_for(room):
    """The instructor's requests: recorded calls, and what CloudFormation does in their name."""
    world, found = World(), []
    everything = {"workshop": "data-parallel"}
    for call in room.calls:
        if call.request.get("StackName", "").endswith("-room") and call.operation == "DeleteStack":
            continue  # the administrator's, who made it
        found += world.asked(call)
    bucket = f"arn:aws:s3:::workshop-s01-{ACCOUNT}-{REGION}"
    for action in ("iam:DeleteRole", "iam:DeleteRolePolicy", "iam:GetRole"):
        found.append(Request(action, f"{ROLE}/workshop-s01-roles-TrainingRole-A1"))
    found += [Request(action, bucket) for action in ("s3:DeleteBucket", "s3:DeleteBucketPolicy")]
    for action, kind in (
        ("DeleteSubnet", "subnet"),
        ("DisassociateRouteTable", "route-table"),
        ("DeleteSecurityGroup", "security-group"),
        ("RevokeSecurityGroupEgress", "security-group"),
        ("RevokeSecurityGroupIngress", "security-group"),
    ):
        context = {f"aws:ResourceTag/{key}": value for key, value in everything.items()}
        found.append(Request(f"ec2:{action}", f"arn:aws:ec2:{REGION}:{ACCOUNT}:{kind}/x", context))
    return found


def instructor(room, *requests):
    return [
        one for one in requests if decision([room.policies["InstructorPolicy"]], one) != ALLOWED
    ]


def test_the_instructor_may_look_price_and_clean(room):
    assert len(room.calls) > 20 * COUNT
    assert instructor(room, *asked_for(room)) == []
    for operation, word in (
        ("StopTrainingJob", "TrainingJob"),
        ("DeleteTrainingJob", "TrainingJob"),
        ("UpdateTrainingJob", "TrainingJob"),
        ("StopTransformJob", "TransformJob"),
        ("DeleteEndpoint", "Endpoint"),
        ("DeleteEndpointConfig", "EndpointConfig"),
        ("DeleteModel", "Model"),
    ):
        tags = {"workshop": "data-parallel", "seat": "s07"}
        assert instructor(room, *sagemaker(operation, word, "workshop-s07-x", tags)) == []
    notebook = f"{SAGEMAKER}:notebook-instance/workshop-s07"
    tagged = {"aws:ResourceTag/workshop": "data-parallel"}
    assert instructor(room, Request("sagemaker:StopNotebookInstance", notebook, tagged)) == []


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        *(
            (f"iam:{one}", f"{ROLE}/workshop-s01-roles-A")
            for one in (
                "CreateRole",
                "PutRolePolicy",
                "AttachRolePolicy",
                "UpdateAssumeRolePolicy",
                "PassRole",
            )
        ),
        ("iam:DeleteRole", f"{ROLE}/Admin"),
        ("sts:AssumeRole", f"{ROLE}/workshop-s01-roles-NotebookRole-A"),
        (
            "cloudformation:DeleteStack",
            f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/workshop-class-room/1",
        ),
        (
            "cloudformation:DeleteStack",
            f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/payroll/1",
        ),
        (
            "cloudformation:CreateStack",
            f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/workshop-s01-x/1",
        ),
        ("s3:GetObject", f"arn:aws:s3:::workshop-s01-{ACCOUNT}-{REGION}/data/x"),
        ("s3:DeleteObject", "arn:aws:s3:::payroll/x"),
        ("sagemaker:DeleteEndpoint", f"{SAGEMAKER}:endpoint/workshop-s01-x"),  # without tags
        ("sagemaker:DeleteEndpoint", f"{SAGEMAKER}:endpoint/payroll"),
        ("sagemaker:CreateTrainingJob", f"{SAGEMAKER}:training-job/workshop-s01-x"),
        ("ec2:DeleteSubnet", f"arn:aws:ec2:{REGION}:{ACCOUNT}:subnet/untagged"),
        ("ec2:DeleteVpc", f"arn:aws:ec2:{REGION}:{ACCOUNT}:vpc/any"),
        ("ec2:RunInstances", "*"),
        ("ce:UpdateCostAllocationTagsStatus", "*"),
    ],
)
def test_the_instructor_may_not(room, action, resource):
    assert instructor(room, Request(action, resource))


def test_the_instructors_policy_fits(room):
    """6,144 characters without white space: IAM's limit of a managed policy."""
    for document in room.policies.values():
        assert len("".join(json.dumps(document).split())) <= 6144


def test_parliament_finds_nothing_in_the_classs_policies(room):
    documents = dict(room.policies)
    (own,) = [one for one in room.seats["s01"].policies["TrainingRole"] if "ec2:Subnet" in str(one)]
    newer = "sagemaker:DeleteTrainingJob"  # botocore has it, parliament 1.6.4 does not yet
    found = {
        name: [one for one in policy_findings(json.dumps(document)) if newer not in one]
        for name, document in {**documents, "jobs-in-the-subnets": own}.items()
    }
    assert found == {
        name: [] for name in ("InstructorPolicy", "LearnerPolicy", "jobs-in-the-subnets")
    }


# The learners


def test_a_learner_takes_the_role_in_the_tag_and_no_other(room):
    policy = [room.policies["LearnerPolicy"]]

    def may(seat, role):
        tags = {"aws:PrincipalTag/seat": seat} if seat else {}
        return decision(policy, Request("sts:AssumeRole", f"{ROLE}/{role}", tags)) == ALLOWED

    assert may("s01", "workshop-s01-roles-NotebookRole-A1B2")
    assert not may("s01", "workshop-s02-roles-NotebookRole-A1B2")
    assert not may("s0", "workshop-s01-roles-NotebookRole-A1B2")
    assert not may("*", "workshop-s01-roles-NotebookRole-A1B2"), "a tag is no pattern"
    assert not may("", "workshop-s01-roles-NotebookRole-A1B2")
    assert not may("s01", "workshop-s01-roles-TrainingRole-A1B2")


def test_the_role_looks_at_the_tag_as_well(room):
    """Or whoever in the account may assume any role could take on a seat's."""
    assert len(room.trusts) == COUNT
    for seat, document in room.trusts.items():
        (people,) = [one for one in document["Statement"] if "AWS" in one["Principal"]]
        assert people["Principal"] == {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
        assert people["Condition"] == {"StringEquals": {"aws:PrincipalTag/seat": seat}}
