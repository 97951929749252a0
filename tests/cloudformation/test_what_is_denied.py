"""What a seat's roles must not do: to another seat, to other people's things, beyond the limits."""

import itertools
import json
import re

import pytest
import stacks_harness
from aws_calls import ACCOUNT, LOGS, REGION, SAGEMAKER, Call, World, requests_in_vpc
from deployed_policies import standing
from linting_helpers import as_document, policy_findings
from policy_evaluator import Request, allows

from workshop.account import stacks
from workshop.paths import ROOT

KINDS = {
    "TrainingJob": "training-job",
    "TransformJob": "transform-job",
    "Endpoint": "endpoint",
    "EndpointConfig": "endpoint-config",
    "Model": "model",
}
# What a notebook may do with its own.
ENDED = {f"{'Stop' if word.endswith('Job') else 'Delete'}{word}": word for word in KINDS}
TRAINING_LOGS, NOTEBOOK_LOGS = "/aws/sagemaker/TrainingJobs", "/aws/sagemaker/NotebookInstances"


@pytest.fixture(scope="module")
def seats():
    """Seats of one account. The first one's name is how two others begin."""
    with standing("ann", "ann2", "ann3", "bob") as result:
        yield {seat.name: seat for seat in result}


def tags_of(seat):
    return {"workshop": "data-parallel", "seat": seat.name}


def create(operation, name, tags, **sent):
    """A creation by SageMaker's API. tags: a dictionary."""
    word = operation.removeprefix("Create")
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    return Call("sagemaker", operation, {f"{word}Name": name, "Tags": listed} | sent)


def training(seat, seconds=600, kind="ml.c5.xlarge", config=(), **changes):
    """A training job of a seat. changes: name, tags, RoleArn..."""
    sent = {
        "name": f"workshop-{seat.name}-x",
        "tags": tags_of(seat),
        "RoleArn": seat.outputs["TrainingRoleArn"],
        "ResourceConfig": {"InstanceType": kind, "InstanceCount": 1} | dict(config),
        "StoppingCondition": {"MaxRuntimeInSeconds": seconds},
    }
    return create("CreateTrainingJob", **(sent | changes))


def config(seat, kind="ml.m5.large", model="", **changes):
    variant = {"ModelName": model or f"workshop-{seat.name}-m", "VariantName": "all"}
    variant |= {"InstanceType": kind} if kind else {}
    sent = {"name": f"workshop-{seat.name}-x", "tags": tags_of(seat)}
    return create("CreateEndpointConfig", **(sent | changes), ProductionVariants=[variant])


def transform(seat, kind="ml.m5.large", model="", **changes):
    sent = {
        "name": f"workshop-{seat.name}-x",
        "tags": tags_of(seat),
        "ModelName": model or f"workshop-{seat.name}-m",
        "TransformResources": {"InstanceType": kind, "InstanceCount": 1},
    }
    return create("CreateTransformJob", **(sent | changes))


def endpoint(seat, configuration):
    name, tags = f"workshop-{seat.name}-x", tags_of(seat)
    return create("CreateEndpoint", name, tags, EndpointConfigName=configuration)


def tagging(arn, tags, action=None):
    context = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    context |= {"sagemaker:TaggingAction": action} if action else {}
    return Request("sagemaker:AddTags", arn, context)


def sagemaker(operation, word, name, tags):
    """A call about something that stands, with these tags."""
    world = World({f"{SAGEMAKER}:{KINDS[word]}/{name}": dict(tags)})
    service = "sagemaker-runtime" if operation == "InvokeEndpoint" else "sagemaker"
    return world.permissions_for(Call(service, operation, {f"{word}Name": name}))


def stack(name, action="DescribeStacks"):
    return Call("cloudformation", action, {"StackName": name})


def s3(operation, bucket, key=None):
    return Call("s3", operation, {"Bucket": bucket} | ({"Key": key} if key else {}))


def logs(operation, group, stream=""):
    return Call("logs", operation, {"logGroupName": group, "logStreamName": stream})


def attempts(ann, ann2):
    """What -> (role, requests): each of them must be refused to the seat `ann`."""
    ann_prefix, theirs = f"workshop-{ann.name}", f"workshop-{ann2.name}"
    (bucket, role), (other, their_role) = (
        (seat.outputs["BucketName"], seat.outputs["TrainingRoleArn"]) for seat in (ann, ann2)
    )
    tags, others = tags_of(ann), tags_of(ann2)
    notebook, job = {}, {}
    for operation, word in ENDED.items():
        for whose, name, tag_values in (
            ("ann2's", f"{theirs}-x", others),
            ("ann's name, ann2's tags", f"{ann_prefix}-x", others),
            ("ann's name, no tags", f"{ann_prefix}-x", {}),
            ("somebody's name, ann's tags", "payroll", tags),
        ):
            notebook[f"{operation}: {whose}"] = sagemaker(operation, word, name, tag_values)
    for kind in KINDS.values():
        for name in (f"{theirs}-x", f"{ann_prefix}-x"):  # the second has no tags
            notebook[f"claim {kind} {name}"] = [tagging(f"{SAGEMAKER}:{kind}/{name}", tags)]
    for name in (f"{theirs}-roles", f"{ann_prefix}-roles2", "payroll"):
        notebook[f"read the stack {name}"] = stack(name)
    for action in ("CreateStack", "UpdateStack", "DeleteStack"):
        notebook[f"{action} of its own roles"] = stack(f"{ann_prefix}-roles", action)
    for operation in ("GetObject", "PutObject", "DeleteObject"):
        notebook[f"{operation} of ann2"] = s3(operation, other, "kit/kit.tar.gz")
    for action in ("iam:CreateUser", "iam:PutRolePolicy", "sts:AssumeRole"):
        notebook[action] = [Request(action, role)]
    own_job, instance = f"{SAGEMAKER}:training-job/{ann_prefix}-x", f"{SAGEMAKER}:notebook-instance"
    mixed = {"InstanceGroups": [{"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1}]}
    url = "sagemaker:CreatePresignedNotebookInstanceUrl"
    notebook |= {
        "ask ann2's endpoint": sagemaker("InvokeEndpoint", "Endpoint", f"{theirs}-x", others),
        "ask an untagged endpoint": sagemaker("InvokeEndpoint", "Endpoint", f"{ann_prefix}-x", {}),
        "read ann2's job": sagemaker("DescribeTrainingJob", "TrainingJob", f"{theirs}-x", others),
        "create under ann2's tags": [tagging(own_job, others, "CreateTrainingJob")],
        "job with ann2's name": training(ann, name=f"{theirs}-x"),
        "job with ann2's tags": training(ann, tags=others),
        "job without tags": training(ann, tags={}),
        "job with ann2's role": training(ann, RoleArn=their_role),
        "job as administrator": training(ann, RoleArn=f"arn:aws:iam::{ACCOUNT}:role/Admin"),
        "job with the notebook's own role": training(ann, RoleArn=ann.outputs["NotebookRoleArn"]),
        "pass a job's role to EC2": [
            Request("iam:PassRole", role, {"iam:PassedToService": "ec2.amazonaws.com"})
        ],
        "job on p4d": training(ann, kind="ml.p4d.24xlarge"),
        "job with p5 in a group": training(ann, config=mixed),
        "job of a day": training(ann, seconds=86_400),
        "job without a limit": training(ann, StoppingCondition={}),
        "warm pool of an hour": training(ann, config={"KeepAlivePeriodInSeconds": 3600}),
        "endpoint on p4d": config(ann, kind="ml.p4d.24xlarge"),
        "endpoint without instances": config(ann, kind=""),
        "endpoint without tags": config(ann, tags={}),
        "endpoint of ann2's model": config(ann, model=f"{theirs}-m"),
        "endpoint of ann2's configuration": endpoint(ann, f"{theirs}-c"),
        "endpoint of somebody's configuration": endpoint(ann, "payroll"),
        "transform without tags": transform(ann, tags={}),
        "transform on g5": transform(ann, kind="ml.g5.48xlarge"),
        "transform of ann2's model": transform(ann, model=f"{theirs}-m"),
        "list ann2's bucket": s3("ListObjectsV2", other),
        "read ann2's log": logs("GetLogEvents", TRAINING_LOGS, f"{theirs}-x/algo-1"),
        "write a job's log": logs("PutLogEvents", TRAINING_LOGS, f"{ann_prefix}-x/algo-1"),
        "write ann2's job's log": logs("PutLogEvents", TRAINING_LOGS, f"{theirs}-x/algo-1"),
        "write ann2's notebook log": logs("PutLogEvents", NOTEBOOK_LOGS, f"{theirs}/x"),
        "read all log groups": [Request("logs:DescribeLogGroups", f"{LOGS}:*")],
        "stop ann2's notebook": [Request("sagemaker:StopNotebookInstance", f"{instance}/{theirs}")],
        "a larger notebook": [
            Request("sagemaker:UpdateNotebookInstance", f"{instance}/{ann_prefix}")
        ],
        "its URL": [Request(url, f"{instance}/{ann_prefix}")],
        "take on ann2's role": [Request("sts:AssumeRole", their_role)],
        "a VPC": [Request("ec2:CreateVpc", "*")],
        "an instance of EC2": [Request("ec2:RunInstances", "*")],
    }
    endpoints, image = "/aws/sagemaker/Endpoints", f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository"
    metrics = {"cloudwatch:namespace": "AWS/Billing"}
    job |= {
        "overwrite the kit, which the notebook executes": s3("PutObject", bucket, "kit/kit.tar.gz"),
        "overwrite the data": s3("PutObject", bucket, "data/digits/training/0.npz"),
        "delete": s3("DeleteObject", bucket, "jobs/x/model.tar.gz"),
        "list ann2's bucket": s3("ListObjectsV2", other),
        "read ann2's data": s3("GetObject", other, "data/digits/0.npz"),
        "write to ann2": s3("PutObject", other, "jobs/x"),
        "list all buckets": Call("s3", "ListBuckets", {}),
        "read ann2's log": logs("GetLogEvents", TRAINING_LOGS, f"{theirs}-x/algo-1"),
        "write ann2's log": logs("PutLogEvents", TRAINING_LOGS, f"{theirs}-x/algo-1"),
        "write its endpoint's log": logs("PutLogEvents", f"{endpoints}/{theirs}-x", "all/i"),
        "start another job": training(ann),
        "pass its role on": [Request("iam:PassRole", role)],
        "take on ann2's role": [Request("sts:AssumeRole", their_role)],
        "invent metrics": [Request("cloudwatch:PutMetricData", "*", metrics)],
        "pull ann2's image": [Request("ecr:BatchGetImage", f"{image}/{theirs}-horovod")],
        "push an image": [Request("ecr:PutImage", f"{image}/{ann_prefix}-horovod")],
    }
    for request in requests_in_vpc(ann2.outputs):
        if request.context:
            job[f"{request.action} in ann2's VPC: {request.resource}"] = [request]
    by_role = {"NotebookRole": notebook, "TrainingRole": job}
    return {
        f"{role}: {subject}": (role, requests(tried))
        for role, all_of_it in by_role.items()
        for subject, tried in all_of_it.items()
    }


def requests(tried):
    """What a call asks for; a list of requests is that already."""
    return World().permissions_for(tried) if isinstance(tried, Call) else tried


def let_through(seat, tried):
    """What of it the seat's policies allow."""
    return [
        subject
        for subject, (role, tried_requests) in tried.items()
        if not seat.refused(role, tried_requests)
    ]


def own_ways(ann):
    """(role, requests) of the same calls with the seat's own, put right."""
    name, bucket = f"workshop-{ann.name}", ann.outputs["BucketName"]
    notebook = [
        training(ann),
        training(ann, config={"KeepAlivePeriodInSeconds": 600}),
        config(ann),
        transform(ann),
        endpoint(ann, f"{name}-c"),
        sagemaker("InvokeEndpoint", "Endpoint", f"{name}-x", tags_of(ann)),
        *(
            sagemaker(operation, word, f"{name}-x", tags_of(ann))
            for operation, word in ENDED.items()
        ),
        *(stack(f"{name}-{row}") for row in stacks.ALL),
        s3("PutObject", bucket, "kit/kit.tar.gz"),
        logs("GetLogEvents", TRAINING_LOGS, f"{name}-x/algo-1"),
        logs("CreateLogGroup", NOTEBOOK_LOGS),
        logs("PutLogEvents", NOTEBOOK_LOGS, f"{name}/LifecycleConfigOnStart"),
    ]
    job = [requests_in_vpc(ann.outputs), s3("PutObject", bucket, "jobs/x/model.tar.gz")]
    by_role = {"NotebookRole": notebook, "TrainingRole": job}
    return [(role, requests(row)) for role, all_of_it in by_role.items() for row in all_of_it]


def test_no_seat_can_touch_another(seats):
    """Every ordered pair, in each way that there is; with its own each can do the same."""
    for seat, other in itertools.permutations(seats.values(), 2):
        tried = attempts(seat, other)
        assert len(tried) >= 90 and all(asked_for for _, asked_for in tried.values())
        assert let_through(seat, tried) == [], (seat.name, other.name)
        assert [row for row in own_ways(seat) if seat.refused(*row)] == []


def test_a_learner_takes_the_role_in_the_tag_and_no_other():
    """By the policy that docs/teaching/class_on_aws.md tells administrators to make."""
    page = (ROOT / "docs/teaching/class_on_aws.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    policy, role_arn = json.loads(text.replace("ACCOUNT", ACCOUNT)), f"arn:aws:iam::{ACCOUNT}:role"
    assert policy_findings(policy) == []

    def may(seat, role):
        tags = {"aws:PrincipalTag/seat": seat} if seat else {}
        return allows([policy], Request("sts:AssumeRole", f"{role_arn}/{role}", tags))

    assert may("ann", "workshop-ann-roles-NotebookRole-A1B2")
    assert not may("ann", "workshop-ann2-roles-NotebookRole-A1B2")
    assert not may("ann2", "workshop-ann-roles-NotebookRole-A1B2")
    assert not may("*", "workshop-ann-roles-NotebookRole-A1B2"), "a tag is no pattern"
    assert not may("", "workshop-ann-roles-NotebookRole-A1B2")
    assert not may("ann", "workshop-ann-roles-TrainingRole-A1B2")


def test_the_role_looks_at_the_tag_as_well(seats):
    """Or whoever in the account may assume any role could take on a seat's."""
    roles, trusts = stacks_harness.plain_client("iam").list_roles()["Roles"], {}
    for role in roles:
        _, seat, _, kind, *_ = role["RoleName"].split("-")
        if kind == "NotebookRole":
            trusts[seat] = as_document(role["AssumeRolePolicyDocument"])["Statement"]
    assert set(trusts) == set(seats)
    for seat, statements in trusts.items():
        (people,) = [row for row in statements if "AWS" in row["Principal"]]
        assert people["Principal"] == {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
        assert people["Condition"] == {"StringEquals": {"aws:PrincipalTag/seat": seat}}
