"""What a seat's roles must not do: to another seat, to strangers, and beyond the limits."""

import pytest
from aws_calls import ACCOUNT, LOGS, REGION, SAGEMAKER, Call, World, in_the_vpc
from deployed_policies import standing
from policy_evaluator import Request, decision

OWN = {"workshop": "data-parallel", "seat": "ann"}
OTHER = {"workshop": "data-parallel", "seat": "ann2"}
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
    return Call("cloudformation", action, {"StackName": name})


def endpoint(configuration="workshop-ann-c"):
    sent = {"EndpointName": "workshop-ann-x", "EndpointConfigName": configuration}
    return Call("sagemaker", "CreateEndpoint", sent | {"Tags": listed(OWN)})


def s3(operation, bucket, key=None):
    return Call("s3", operation, {"Bucket": bucket} | ({"Key": key} if key else {}))


def logs(operation, group, stream=""):
    return Call("logs", operation, {"logGroupName": group, "logStreamName": stream})


def attempts(ann, ann2):
    """What -> (role, requests): each of them must be refused."""
    role, own, other = (
        ann.outputs["TrainingRoleArn"],
        ann.outputs["BucketName"],
        ann2.outputs["BucketName"],
    )
    notebook, job = {}, {}
    for operation, word in ENDED.items():
        for whose, name, tags in (
            ("ann2's", "workshop-ann2-x", OTHER),
            ("ann's name, ann2's tags", "workshop-ann-x", OTHER),
            ("ann's name, no tags", "workshop-ann-x", {}),
            ("a stranger's name, ann's tags", "payroll", OWN),
        ):
            notebook[f"{operation}: {whose}"] = sagemaker(operation, word, name, tags)
    for kind in KINDS.values():
        for name in ("workshop-ann2-x", "workshop-ann-x"):  # the second has no tags
            notebook[f"claim {kind} {name}"] = [tagging(f"{SAGEMAKER}:{kind}/{name}", OWN)]
    for name in ("workshop-ann2-roles", "workshop-ann-roles2", "payroll"):
        notebook[f"read the stack {name}"] = stack(name)
    for action in ("CreateStack", "UpdateStack", "DeleteStack"):
        notebook[f"{action} of its own roles"] = stack("workshop-ann-roles", action)
    for operation in ("GetObject", "PutObject", "DeleteObject"):
        notebook[f"{operation} of ann2"] = s3(operation, other, "kit/kit.tar.gz")
    for action in ("iam:CreateUser", "iam:PutRolePolicy", "sts:AssumeRole"):
        notebook[action] = [Request(action, role)]
    own_job, create = f"{SAGEMAKER}:training-job/workshop-ann-x", "CreateTrainingJob"
    mixed = {"InstanceGroups": [{"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1}]}
    administrator, its_own = f"arn:aws:iam::{ACCOUNT}:role/Admin", ann.outputs["NotebookRoleArn"]
    instance = f"{SAGEMAKER}:notebook-instance/workshop-ann"
    notebook |= {
        "ask ann2's endpoint": invoked("workshop-ann2-x", OTHER),
        "ask an untagged endpoint": invoked("workshop-ann-x", {}),
        "read ann2's job": sagemaker(
            "DescribeTrainingJob", "TrainingJob", "workshop-ann2-x", OTHER
        ),
        "create under ann2's tags": [tagging(own_job, OTHER, create)],
        "job with ann2's name": training("workshop-ann2-x", role=role),
        "job with ann2's tags": training(tags=OTHER, role=role),
        "job without tags": training(tags={}, role=role),
        "job with ann2's role": training(role=ann2.outputs["TrainingRoleArn"]),
        "job with an administrator's role": training(role=administrator),
        "job with the notebook's own role": training(role=its_own),
        "job on p4d": training(kind="ml.p4d.24xlarge", role=role),
        "job with p5 in a group": training(config=mixed, role=role),
        "job of a day": training(seconds=86_400, role=role),
        "job without a limit": training(StoppingCondition={}, role=role),
        "warm pool of an hour": training(config={"KeepAlivePeriodInSeconds": 3600}, role=role),
        "endpoint on p4d": config(kind="ml.p4d.24xlarge"),
        "endpoint without instances": config(kind=""),
        "endpoint without tags": config(tags={}),
        "endpoint of ann2's model": config(model="workshop-ann2-m"),
        "endpoint of ann2's configuration": endpoint("workshop-ann2-c"),
        "endpoint of a stranger's configuration": endpoint("payroll"),
        "transform without tags": transform(tags={}),
        "transform on g5": transform(kind="ml.g5.48xlarge"),
        "transform of ann2's model": transform(model="workshop-ann2-m"),
        "list ann2's bucket": s3("ListObjectsV2", other),
        "read ann2's log": logs("GetLogEvents", TRAINING_LOGS, "workshop-ann2-x/algo-1"),
        "write a job's log": logs("PutLogEvents", TRAINING_LOGS, "workshop-ann-x/algo-1"),
        "write ann2's notebook log": logs("PutLogEvents", NOTEBOOK_LOGS, "workshop-ann2/x"),
        "read all log groups": [Request("logs:DescribeLogGroups", f"{LOGS}:*")],
        "stop ann2's notebook": [Request("sagemaker:StopNotebookInstance", f"{instance}2")],
        "make its notebook larger": [Request("sagemaker:UpdateNotebookInstance", instance)],
        "its URL": [Request("sagemaker:CreatePresignedNotebookInstanceUrl", instance)],
        "a VPC": [Request("ec2:CreateVpc", "*")],
        "an instance of EC2": [Request("ec2:RunInstances", "*")],
    }
    endpoints, image = "/aws/sagemaker/Endpoints", f"arn:aws:ecr:{REGION}:{ACCOUNT}:repository"
    metrics = {"cloudwatch:namespace": "AWS/Billing"}
    job |= {
        "overwrite the kit, which the notebook executes": s3("PutObject", own, "kit/kit.tar.gz"),
        "overwrite the data": s3("PutObject", own, "data/digits/training/0.npz"),
        "delete": s3("DeleteObject", own, "jobs/x/model.tar.gz"),
        "read ann2's data": s3("GetObject", other, "data/digits/0.npz"),
        "write to ann2": s3("PutObject", other, "jobs/x"),
        "list all buckets": Call("s3", "ListBuckets", {}),
        "write ann2's log": logs("PutLogEvents", TRAINING_LOGS, "workshop-ann2-x/algo-1"),
        "write its endpoint's log": logs("PutLogEvents", f"{endpoints}/workshop-ann2-x", "all/i"),
        "start another job": training(role=role),
        "pass its role on": [Request("iam:PassRole", role)],
        "invent metrics": [Request("cloudwatch:PutMetricData", "*", metrics)],
        "pull ann2's image": [Request("ecr:BatchGetImage", f"{image}/workshop-ann2-horovod")],
        "push an image": [Request("ecr:PutImage", f"{image}/workshop-ann-horovod")],
    }
    for request in in_the_vpc(ann2.outputs):
        if request.context:
            job[f"{request.action} in ann2's VPC: {request.resource}"] = [request]
    by_role = {"NotebookRole": notebook, "TrainingRole": job}
    return {
        f"{role}: {what}": (role, requests(tried))
        for role, all_of_it in by_role.items()
        for what, tried in all_of_it.items()
    }


def requests(tried):
    """What a call asks for; a list of requests is that already."""
    return World().asked(tried) if isinstance(tried, Call) else tried


def let_through(seat, tried):
    """What of it the seat's policies allow."""
    return [what for what, (role, asked) in tried.items() if not seat.refused(role, asked)]


def test_what_must_be_refused_is(seats):
    tried = attempts(seats["ann"], seats["ann2"])
    assert len(tried) >= 40 and all(requests for _, requests in tried.values())
    assert let_through(seats["ann"], tried) == []


def test_the_same_with_its_own_is_allowed(seats):
    """Or the refusals above would be worth nothing: these are the same calls, put right."""
    ann = seats["ann"]
    role, bucket = ann.outputs["TrainingRoleArn"], ann.outputs["BucketName"]
    good = [
        training(role=role),
        training(config={"KeepAlivePeriodInSeconds": 600}, role=role),
        config(),
        transform(),
        endpoint(),
        invoked("workshop-ann-x", OWN),
        *(sagemaker(operation, word, "workshop-ann-x", OWN) for operation, word in ENDED.items()),
        *(stack(f"workshop-ann-{name}") for name in ("storage", "roles", "network", "notebook")),
        s3("PutObject", bucket, "kit/kit.tar.gz"),
        logs("GetLogEvents", TRAINING_LOGS, "workshop-ann-x/algo-1"),
        logs("CreateLogGroup", NOTEBOOK_LOGS),
        logs("PutLogEvents", NOTEBOOK_LOGS, "workshop-ann/LifecycleConfigOnStart"),
    ]
    refused = [ann.refused("NotebookRole", requests(tried)) for tried in good]
    assert refused == [[]] * len(good)
    assert ann.refused("TrainingRole", in_the_vpc(ann.outputs)) == []
    own = s3("PutObject", bucket, "jobs/x/model.tar.gz")
    assert ann.refused("TrainingRole", requests(own)) == []


def test_nobody_is_forbidden_by_accident(seats):
    """No Deny is used: what is refused is refused because nothing allows it."""
    for documents in seats["ann"].policies.values():
        effects = {one["Effect"] for document in documents for one in document["Statement"]}
        assert effects == {"Allow"}
        assert decision(documents, Request("s3:GetObject", "arn:aws:s3:::x/y")) == "denied"
