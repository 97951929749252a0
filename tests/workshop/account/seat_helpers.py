"""A seat with something of each kind, its neighbours, and a way to refuse calls."""

import json

from botocore.exceptions import ClientError
from emulator_harness import until
from hosting_helpers import archive

import workshop
from workshop.account import stacks
from workshop.jobs.follow import FINAL
from workshop.jobs.logs import LOG_GROUP

ENDPOINT_LOGS = "/aws/sagemaker/Endpoints/"
NOTEBOOK_LOGS = "/aws/sagemaker/NotebookInstances"
ROLE = "arn:aws:iam::" + "0" * 12 + ":role/any"
READS = ("Describe", "List", "Get", "Head")


def quiet(_) -> None:
    """A log that nobody reads."""


def furnish(session) -> None:
    """Give the seat something of every kind that a clean-up knows."""
    workshop.deploy(session, log=quiet)
    fill(session)
    job(session, "done")
    host(session, session.seat, stacks.tags(session.seat))
    repository(session, "horovod", stacks.tags(session.seat))
    notebook(session)


def fill(session) -> None:
    """Objects in the seat's bucket: two versions of one, a delete marker, a broken-off upload."""
    s3, bucket = session.client("s3"), session.bucket
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    for body in (b"first", b"second one"):
        s3.put_object(Bucket=bucket, Key="jobs/a/model.tar.gz", Body=body)
    s3.put_object(Bucket=bucket, Key="data/b", Body=b"x" * 100)
    s3.delete_object(Bucket=bucket, Key="data/b")
    s3.create_multipart_upload(Bucket=bucket, Key="data/big")


def job(session, name: str, tags: list[dict] | None = None, code: str = "") -> str:
    """A job of the seat: one that was stopped before it began, or with `code` one that runs."""
    full = f"{session.job_prefix}{name}"
    client = session.client("sagemaker")
    client.create_training_job(
        TrainingJobName=full,
        RoleArn=ROLE,
        AlgorithmSpecification={"TrainingImage": "registry.invalid/a", "TrainingInputMode": "File"},
        OutputDataConfig={"S3OutputPath": "s3://nowhere/jobs"},
        ResourceConfig={"InstanceCount": 1, "InstanceType": "ml.m5.xlarge", "VolumeSizeInGB": 1},
        StoppingCondition={"MaxRuntimeInSeconds": 1680},
        HyperParameters={
            "sagemaker_program": json.dumps("hello.py"),
            "sagemaker_submit_directory": json.dumps(code or "s3://nowhere/source.tar.gz"),
        },
        Tags=stacks.tags(session.seat) if tags is None else tags,
    )
    if not code:
        client.stop_training_job(TrainingJobName=full)
        until(lambda: status(session, full) in FINAL)
    return full


def packed(session, name: str, script: bytes) -> str:
    """Put a .tar.gz that holds one file into the seat's bucket. Its address."""
    key = f"code/{len(script)}.tar.gz"
    session.client("s3").put_object(Bucket=session.bucket, Key=key, Body=archive({name: script}))
    return f"s3://{session.bucket}/{key}"


def status(session, full: str) -> str:
    job = session.client("sagemaker").describe_training_job(TrainingJobName=full)
    return job["TrainingJobStatus"]


def host(session, name: str, tags: list[dict]) -> None:
    """A model, an endpoint configuration, an endpoint and its log."""
    client, full = session.client("sagemaker"), f"{session.job_prefix}{name}"
    client.create_model(ModelName=full, ExecutionRoleArn=ROLE, Tags=tags)
    variant = {"VariantName": "one", "ModelName": full, "InstanceType": "ml.m5.large"}
    client.create_endpoint_config(
        EndpointConfigName=full,
        ProductionVariants=[variant | {"InitialInstanceCount": 2}],
        Tags=tags,
    )
    client.create_endpoint(EndpointName=full, EndpointConfigName=full, Tags=tags)
    logs = session.client("logs")
    logs.create_log_group(logGroupName=ENDPOINT_LOGS + full)
    logs.create_log_stream(logGroupName=ENDPOINT_LOGS + full, logStreamName="one/i-1")


def repository(session, name: str, tags: list[dict]) -> str:
    """A repository with one image of 10 MB (moto takes the size of its configuration)."""
    client, full = session.client("ecr"), f"{session.job_prefix}{name}"
    client.create_repository(repositoryName=full, tags=tags)
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": {"size": 10_000_000, "digest": "sha256:" + "0" * 64},
        "layers": [],
    }
    client.put_image(repositoryName=full, imageManifest=json.dumps(manifest), imageTag="one")
    return full


def notebook(session) -> str:
    """A notebook instance in a stack of the seat, with a log in the group that all share."""
    properties = {"InstanceType": "ml.t3.medium", "RoleArn": ROLE}
    made = {"Type": "AWS::SageMaker::NotebookInstance", "Properties": properties}
    named = {"Value": {"Fn::GetAtt": ["Notebook", "NotebookInstanceName"]}}
    body = {"Resources": {"Notebook": made}, "Outputs": {"NotebookName": named}}
    stack(session, "notebook", body, stacks.tags(session.seat))
    full = f"{session.job_prefix}notebook"
    client = session.client("cloudformation")
    (made,) = client.list_stack_resources(StackName=full)["StackResourceSummaries"]
    name = made["PhysicalResourceId"].split("/")[-1]
    stream(session, NOTEBOOK_LOGS, f"{name}/jupyter.log")
    return name


def stack(session, name: str, body: dict, tags: list[dict]) -> None:
    session.client("cloudformation").create_stack(
        StackName=f"{session.job_prefix}{name}", TemplateBody=json.dumps(body), Tags=tags
    )


def stream(session, group: str, name: str) -> None:
    logs = session.client("logs")
    if not logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]:
        logs.create_log_group(logGroupName=group)
    logs.create_log_stream(logGroupName=group, logStreamName=name)


def names_left(session) -> list[str]:
    """Everything in the account whose name begins like the seat's, asked of the services."""
    prefix = session.job_prefix

    def names(service: str, operation: str, many: str, key: str, **request) -> list[str]:
        pages = session.client(service).get_paginator(operation).paginate(**request)
        return [each[key] for page in pages for each in page.get(many, [])]

    groups = names("logs", "describe_log_groups", "logGroups", "logGroupName")
    everything = [
        *names("sagemaker", "list_training_jobs", "TrainingJobSummaries", "TrainingJobName"),
        *names("sagemaker", "list_endpoints", "Endpoints", "EndpointName"),
        *names("sagemaker", "list_endpoint_configs", "EndpointConfigs", "EndpointConfigName"),
        *names("sagemaker", "list_models", "Models", "ModelName"),
        *names("sagemaker", "list_notebook_instances", "NotebookInstances", "NotebookInstanceName"),
        *names("s3", "list_buckets", "Buckets", "Name"),
        *names("cloudformation", "describe_stacks", "Stacks", "StackName"),
        *names("iam", "list_roles", "Roles", "RoleName"),
        *names("ecr", "describe_repositories", "repositories", "repositoryName"),
        *(group.split("/")[-1] for group in groups),
    ]
    for group in {LOG_GROUP, NOTEBOOK_LOGS}.intersection(groups):
        everything += names(
            "logs", "describe_log_streams", "logStreams", "logStreamName", logGroupName=group
        )
    return sorted(name for name in everything if name.startswith(prefix))


class Calls:
    """Sees a session's calls, and refuses some."""

    def __init__(self, session) -> None:
        self.session, self.made = session, []
        self.refused: dict[str, int] = {}
        session.boto_session.events.register_first("before-call", self._before)
        session.clients.clear()  # they have the events of the time when they were made

    @property
    def writes(self) -> list[str]:
        """The calls that change something."""
        return [name for name in self.made if not name.startswith(READS)]

    def refuse(self, operation: str, times: int = 1, error: str = "AccessDeniedException") -> None:
        """Refuse an operation's next calls."""
        self.refused[operation], self.error = times, error

    def _before(self, model, **_) -> None:
        name = model.name
        self.made.append(name)
        if self.refused.get(name, 0) > 0:
            self.refused[name] -= 1
            if self.error == "KeyboardInterrupt":
                raise KeyboardInterrupt
            body = {"Error": {"Code": self.error, "Message": f"no {name} for you"}}
            raise ClientError(body, name)
