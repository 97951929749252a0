"""What a seat's roles must not do: to another seat, to strangers, and beyond the limits."""

import copy
import dataclasses
import json

import pytest
from aws_calls import ACCOUNT, LOGS, REGION, SAGEMAKER, Call, World, in_the_vpc
from deployed_policies import standing
from policy_evaluator import Request, decision

OWN = {"workshop": "data-parallel", "seat": "ann"}
OTHER = {"workshop": "data-parallel", "seat": "ann2"}
ENDED = {  # what a notebook may do with its own -> the kind of resource
    "StopTrainingJob": "TrainingJob",
    "StopTransformJob": "TransformJob",
    "DeleteEndpoint": "Endpoint",
    "DeleteEndpointConfig": "EndpointConfig",
    "DeleteModel": "Model",
}
KINDS = {
    "TrainingJob": "training-job",
    "TransformJob": "transform-job",
    "Endpoint": "endpoint",
    "EndpointConfig": "endpoint-config",
    "Model": "model",
}


@pytest.fixture(scope="module")
def seats():
    """ann and ann2, and the seat that the local VPC of a stranger belongs to."""
    with pytest.MonkeyPatch.context() as patch, standing(patch, "ann", "ann2") as found:
        yield {seat.name: seat for seat in found}


def listed(tags):
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def training(name="workshop-ann-x", tags=OWN, seconds=600, kind="ml.c5.xlarge", **more):
    sent = {
        "TrainingJobName": name,
        "RoleArn": more.pop("role", None),
        "ResourceConfig": {"InstanceType": kind, "InstanceCount": 1} | more.pop("config", {}),
        "StoppingCondition": {"MaxRuntimeInSeconds": seconds},
        "Tags": listed(tags),
    }
    return Call("sagemaker", "CreateTrainingJob", sent | more)


def config(name="workshop-ann-x", tags=OWN, kind="ml.m5.large", model="workshop-ann-m"):
    variant = {"ModelName": model, "VariantName": "all"} | ({"InstanceType": kind} if kind else {})
    sent = {"EndpointConfigName": name, "ProductionVariants": [variant], "Tags": listed(tags)}
    return Call("sagemaker", "CreateEndpointConfig", sent)


def transform(name="workshop-ann-x", tags=OWN, kind="ml.m5.large", model="workshop-ann-m"):
    instances = {"InstanceType": kind, "InstanceCount": 1}
    sent = {"TransformJobName": name, "ModelName": model, "TransformResources": instances}
    return Call("sagemaker", "CreateTransformJob", sent | {"Tags": listed(tags)})


def tagging(arn, tags, action=None):
    context = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
    context |= {"sagemaker:TaggingAction": action} if action else {}
    return Request("sagemaker:AddTags", arn, context)


def sagemaker(operation, word, name, tags):
    """A call about something that stands, with these tags."""
    world = World({f"{SAGEMAKER}:{KINDS[word]}/{name}": dict(tags)})
    return world.asked(Call("sagemaker", operation, {f"{word}Name": name}))


def invoked(name, tags):
    world = World({f"{SAGEMAKER}:endpoint/{name}": dict(tags)})
    return world.asked(Call("sagemaker-runtime", "InvokeEndpoint", {"EndpointName": name}))


def stack(name, action="DescribeStacks"):
    return World().asked(Call("cloudformation", action, {"StackName": name}))


def s3(operation, bucket, key=None):
    return World().asked(Call("s3", operation, {"Bucket": bucket} | ({"Key": key} if key else {})))


def logs(operation, group, stream=""):
    sent = {"logGroupName": group, "logStreamName": stream}
    return World().asked(Call("logs", operation, sent))


def attempts(ann, ann2):
    """What -> (role, requests): each of them must be refused."""
    other, own = ann2.outputs["BucketName"], ann.outputs["BucketName"]
    found = {}

    def notebook(what, requests):
        found[f"notebook: {what}"] = ("NotebookRole", requests)

    def job(what, requests):
        found[f"job: {what}"] = ("TrainingRole", requests)

    role = ann.outputs["TrainingRoleArn"]
    for operation, word in ENDED.items():
        notebook(f"{operation} of ann2", sagemaker(operation, word, "workshop-ann2-x", OTHER))
        notebook(
            f"{operation}, ann's name, ann2's tags",
            sagemaker(operation, word, "workshop-ann-x", OTHER),
        )
        notebook(
            f"{operation}, ann's name, no tags", sagemaker(operation, word, "workshop-ann-x", {})
        )
        notebook(
            f"{operation}, a stranger's name, ann's tags",
            sagemaker(operation, word, "payroll", OWN),
        )
    notebook("ask ann2's endpoint", invoked("workshop-ann2-x", OTHER))
    notebook("ask an untagged endpoint", invoked("workshop-ann-x", {}))
    notebook(
        "read ann2's job", sagemaker("DescribeTrainingJob", "TrainingJob", "workshop-ann2-x", OTHER)
    )
    for kind in KINDS.values():
        notebook(f"claim ann2's {kind}", [tagging(f"{SAGEMAKER}:{kind}/workshop-ann2-x", OWN)])
        notebook(f"claim an untagged {kind}", [tagging(f"{SAGEMAKER}:{kind}/workshop-ann-x", OWN)])
    create = "CreateTrainingJob"
    notebook(
        "create under ann2's tags",
        [tagging(f"{SAGEMAKER}:training-job/workshop-ann-x", OTHER, create)],
    )
    notebook("job with ann2's name", World().asked(training("workshop-ann2-x", role=role)))
    notebook("job with ann2's tags", World().asked(training(tags=OTHER, role=role)))
    notebook("job without tags", World().asked(training(tags={}, role=role)))
    notebook("job with ann2's role", World().asked(training(role=ann2.outputs["TrainingRoleArn"])))
    notebook(
        "job with an administrator's role",
        World().asked(training(role=f"arn:aws:iam::{ACCOUNT}:role/Admin")),
    )
    notebook(
        "job with the notebook's own role",
        World().asked(training(role=ann.outputs["NotebookRoleArn"])),
    )
    notebook("job on p4d", World().asked(training(kind="ml.p4d.24xlarge", role=role)))
    mixed = {"InstanceGroups": [{"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1}]}
    notebook("job with p5 in a group", World().asked(training(config=mixed, role=role)))
    notebook("job of a day", World().asked(training(seconds=86_400, role=role)))
    notebook("job without a limit", World().asked(training(StoppingCondition={}, role=role)))
    warm = {"KeepAlivePeriodInSeconds": 3600}
    notebook("warm pool of an hour", World().asked(training(config=warm, role=role)))
    notebook("endpoint on p4d", World().asked(config(kind="ml.p4d.24xlarge")))
    notebook("endpoint without instances", World().asked(config(kind="")))
    notebook("endpoint without tags", World().asked(config(tags={})))
    notebook("endpoint of ann2's model", World().asked(config(model="workshop-ann2-m")))
    notebook("transform without tags", World().asked(transform(tags={})))
    notebook("transform on g5", World().asked(transform(kind="ml.g5.48xlarge")))
    notebook("transform of ann2's model", World().asked(transform(model="workshop-ann2-m")))
    mine = {"EndpointName": "workshop-ann-x", "Tags": listed(OWN)}
    for place in ("workshop-ann2-c", "payroll"):
        sent = mine | {"EndpointConfigName": place}
        notebook(
            f"endpoint of the configuration {place}",
            World().asked(Call("sagemaker", "CreateEndpoint", sent)),
        )
    for name in ("workshop-ann2-roles", "workshop-ann-roles2", "payroll"):
        notebook(f"read the stack {name}", stack(name))
    for action in ("CreateStack", "UpdateStack", "DeleteStack"):
        notebook(f"{action} of its own roles", stack("workshop-ann-roles", action))
    notebook("list ann2's bucket", s3("ListObjectsV2", other))
    for operation in ("GetObject", "PutObject", "DeleteObject"):
        notebook(f"{operation} of ann2", s3(operation, other, "kit/kit.tar.gz"))
    training_logs = "/aws/sagemaker/TrainingJobs"
    notebook("read ann2's log", logs("GetLogEvents", training_logs, "workshop-ann2-x/algo-1"))
    notebook("write a job's log", logs("PutLogEvents", training_logs, "workshop-ann-x/algo-1"))
    notebooks = "/aws/sagemaker/NotebookInstances"
    notebook("write ann2's notebook log", logs("PutLogEvents", notebooks, "workshop-ann2/x"))
    notebook("read all log groups", [Request("logs:DescribeLogGroups", f"{LOGS}:*")])
    instance = f"{SAGEMAKER}:notebook-instance/workshop-ann2"
    notebook("stop ann2's notebook", [Request("sagemaker:StopNotebookInstance", instance)])
    own_instance = f"{SAGEMAKER}:notebook-instance/workshop-ann"
    notebook(
        "make its notebook larger", [Request("sagemaker:UpdateNotebookInstance", own_instance)]
    )
    notebook(
        "a URL of its notebook",
        [Request("sagemaker:CreatePresignedNotebookInstanceUrl", own_instance)],
    )
    for action in ("iam:CreateUser", "iam:PutRolePolicy", "sts:AssumeRole"):
        notebook(action, [Request(action, role)])
    notebook("a VPC", [Request("ec2:CreateVpc", "*")])
    notebook("an instance of EC2", [Request("ec2:RunInstances", "*")])

    job("overwrite the kit, which the notebook executes", s3("PutObject", own, "kit/kit.tar.gz"))
    job("overwrite the data", s3("PutObject", own, "data/digits/training/0.npz"))
    job("delete", s3("DeleteObject", own, "jobs/x/model.tar.gz"))
    job("read ann2's data", s3("GetObject", other, "data/digits/0.npz"))
    job("write to ann2", s3("PutObject", other, "jobs/x"))
    job("list all buckets", World().asked(Call("s3", "ListBuckets", {})))
    job("write ann2's log", logs("PutLogEvents", training_logs, "workshop-ann2-x/algo-1"))
    job(
        "write ann2's endpoint's log",
        logs("PutLogEvents", "/aws/sagemaker/Endpoints/workshop-ann2-x", "all/i-1"),
    )
    job("start another job", World().asked(training(role=role)))
    job("pass its role on", [Request("iam:PassRole", role)])
    metrics = {"cloudwatch:namespace": "AWS/Billing"}
    job("invent metrics", [Request("cloudwatch:PutMetricData", "*", metrics)])
    image = f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository"
    job("pull ann2's image", [Request("ecr:BatchGetImage", f"{image}/workshop-ann2-horovod")])
    job("push an image", [Request("ecr:PutImage", f"{image}/workshop-ann-horovod")])
    for request in in_the_vpc(ann2.outputs):
        if request.context:
            what = request.resource.split(":")[-1]
            job(f"{request.action} in ann2's VPC: {what}", [request])
    return found


def let_through(seat, tried):
    """What of it the seat's policies allow."""
    return [what for what, (role, asked) in tried.items() if not seat.refused(role, asked)]


def test_what_must_be_refused_is(seats):
    tried = attempts(seats["ann"], seats["ann2"])
    assert len(tried) >= 40 and all(requests for _, requests in tried.values())
    assert let_through(seats["ann"], tried) == []


def without(*keys, of=None):
    """A function that takes condition keys out of a policy. of: operators; None: all."""

    def change(document):
        for statement in document["Statement"]:
            for operator, conditions in statement.get("Condition", {}).items():
                if of is None or operator in of:
                    left = {key: one for key, one in conditions.items() if key not in keys}
                    statement["Condition"][operator] = left
        return document

    return change


def replaced(old, new):
    """A function that replaces a text everywhere in a policy."""
    return lambda document: json.loads(json.dumps(document).replace(old, new))


# A defect that was once there -> how it comes back, and one of the attempts that finds it.
DEFECTS = {
    "a name is enough": (
        without("aws:ResourceTag/workshop", "aws:ResourceTag/seat"),
        "notebook: DeleteEndpoint, ann's name, ann2's tags",
    ),
    "a prefix without its hyphen": (
        replaced("workshop-ann-*", "workshop-ann*"),
        "notebook: read ann2's job",
    ),
    "stacks by their prefix": (
        replaced("stack/workshop-ann-roles/*", "stack/workshop-ann-*/*"),
        "notebook: read the stack workshop-ann-roles2",
    ),
    "tags can be added later": (
        without("sagemaker:TaggingAction"),
        "notebook: claim an untagged endpoint",
    ),
    "jobs need no tags": (
        without("aws:RequestTag/workshop", "aws:RequestTag/seat"),
        "notebook: job without tags",
    ),
    "any instance type": (without("sagemaker:InstanceTypes"), "notebook: job on p4d"),
    "ForAllValues alone": (
        without("sagemaker:InstanceTypes", of=("Null",)),
        "notebook: endpoint without instances",
    ),
    "any time": (without("sagemaker:MaxRuntimeInSeconds"), "notebook: job of a day"),
    "jobs write everywhere": (
        replaced("us-east-1/jobs/*", "us-east-1/*"),
        "job: overwrite the kit, which the notebook executes",
    ),
    "any VPC": (
        without("ec2:Vpc"),
        "job: ec2:DeleteNetworkInterface in ann2's VPC: network-interface/eni-1",
    ),
    "logs of all": (
        replaced("log-stream:workshop-ann-*", "log-stream:*"),
        "job: write ann2's log",
    ),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_that_comes_back_is_found(seats, defect):
    ann = seats["ann"]
    change, found_by = DEFECTS[defect]
    policies = {
        role: [change(copy.deepcopy(one)) for one in documents]
        for role, documents in ann.policies.items()
    }
    worse = dataclasses.replace(ann, policies=policies)
    assert found_by in let_through(worse, attempts(ann, seats["ann2"]))


def test_the_same_with_its_own_is_allowed(seats):
    """Or the refusals above would be worth nothing: these are the same calls, put right."""
    ann = seats["ann"]
    role, bucket = ann.outputs["TrainingRoleArn"], ann.outputs["BucketName"]
    endpoint = {"EndpointName": "workshop-ann-x", "EndpointConfigName": "workshop-ann-c"}
    good = [
        World().asked(training(role=role)),
        World().asked(training(config={"KeepAlivePeriodInSeconds": 600}, role=role)),
        World().asked(config()),
        World().asked(transform()),
        World().asked(Call("sagemaker", "CreateEndpoint", endpoint | {"Tags": listed(OWN)})),
        invoked("workshop-ann-x", OWN),
        *(sagemaker(operation, word, "workshop-ann-x", OWN) for operation, word in ENDED.items()),
        *(stack(f"workshop-ann-{name}") for name in ("storage", "roles", "network", "notebook")),
        s3("PutObject", bucket, "kit/kit.tar.gz"),
        logs("GetLogEvents", "/aws/sagemaker/TrainingJobs", "workshop-ann-x/algo-1"),
        logs("CreateLogGroup", "/aws/sagemaker/NotebookInstances"),
        logs(
            "PutLogEvents",
            "/aws/sagemaker/NotebookInstances",
            "workshop-ann/LifecycleConfigOnStart",
        ),
    ]
    assert [ann.refused("NotebookRole", requests) for requests in good] == [[]] * len(good)
    assert ann.refused("TrainingRole", in_the_vpc(ann.outputs)) == []
    own = s3("PutObject", bucket, "jobs/x/model.tar.gz")
    assert ann.refused("TrainingRole", own) == []


def test_nobody_is_forbidden_by_accident(seats):
    """No Deny is used: what is refused is refused because nothing allows it."""
    for documents in seats["ann"].policies.values():
        effects = {one["Effect"] for document in documents for one in document["Statement"]}
        assert effects == {"Allow"}
        assert decision(documents, Request("s3:GetObject", "arn:aws:s3:::x/y")) == "denied"


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        (
            replaced("/NotebookInstances:*", "/NotebookInstances"),
            logs("CreateLogGroup", "/aws/sagemaker/NotebookInstances"),
        ),
        (
            replaced("sagemaker:DescribeNotebookInstance", "sagemaker:DescribeApp"),
            [
                Request(
                    "sagemaker:DescribeNotebookInstance",
                    f"{SAGEMAKER}:notebook-instance/workshop-ann",
                )
            ],
        ),
        (replaced("sagemaker:AddTags", "sagemaker:DeleteTags"), World().asked(transform())),
    ],
    ids=["a log group by its name alone", "stacks status", "tags"],
)
def test_a_permission_that_was_missing_once_is_missed(seats, change, asked):
    ann = seats["ann"]
    documents = [change(copy.deepcopy(one)) for one in ann.policies["NotebookRole"]]
    worse = dataclasses.replace(ann, policies={"NotebookRole": documents})
    assert ann.refused("NotebookRole", asked) == [] != worse.refused("NotebookRole", asked)
