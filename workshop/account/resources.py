"""What a seat can have in an account: a class for each type, which lists, prices and deletes it.

`TYPES` is the table of all, in the order of deletion; `cleanup.py` works through it. Names of log
groups and streams:
https://docs.aws.amazon.com/sagemaker/latest/dg/logging-cloudwatch.html

AWS's Resource Groups Tagging API lists by tag in one call, but not all of this: no log streams,
which have no tags, and no objects; nor does it tell running jobs from ended ones.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from botocore import xform_name
from botocore.exceptions import BotoCoreError, ClientError

from workshop.account import stacks
from workshop.account.prices import (
    GB,
    HOURS_PER_MONTH,
    PriceNotKnown,
    cost,
    hourly_cost,
    idle_price,
    up_to_cents,
    usd_per_month,
)

WAIT_SECONDS = 10 * 60  # AWS gives a job 120 s to end, and uploads what it left
PAUSE_SECONDS = {"local": 0.5, "aws": 10}  # between two looks
TRAINING_LOGS = "/aws/sagemaker/TrainingJobs"
TRANSFORM_LOGS = "/aws/sagemaker/TransformJobs"
NOTEBOOK_LOGS = "/aws/sagemaker/NotebookInstances"
ENDPOINT_LOGS = "/aws/sagemaker/Endpoints/"
RUNNING = ("InProgress", "Stopping")
DENIED = ("AccessDeniedException", "AccessDenied")
# The codes, of all services here, by which AWS says that there is no such resource.
GONE = (
    "NoSuchBucket",
    "NoSuchUpload",
    "RepositoryNotFoundException",
    "ResourceNotFound",
    "ResourceNotFoundException",
)
BATCH = 1000  # keys of one DeleteObjects, at most
DEFAULT_REGION = "us-east-1"  # S3 names every other region of a bucket, and not this one


class NotDeleted(Exception):
    """A resource cannot go yet; the message says why."""


# What may go wrong with one resource while the rest is worked on.
REFUSALS = (ClientError, BotoCoreError, stacks.StackError, NotDeleted)


@dataclass(frozen=True)
class Resource:
    """Something whose name begins like the seat's.

    kind: its type, in the plural. tags: None where AWS does not tell; then `note` says why.
    count: how many, where one entry stands for several. size: bytes; None: AWS does not tell.
    usd_per_month: what it costs while it stays; None: not known.
    """

    kind: str
    name: str
    tags: Mapping[str, str] | None = None
    count: int = 1
    size: int | None = 0
    usd_per_month: float | None = 0.0
    note: str = ""


class Account:
    """The account of a session. since: of jobs and endpoints, only those made after it."""

    def __init__(self, session, since: datetime | None = None) -> None:
        self.session, self.prefix, self.since = session, session.job_prefix, since
        self.client = session.client

    def entries(self, service: str, operation: str, key: str, **request) -> Iterator[dict]:
        """What an operation lists under `key`, of all its pages."""
        for page in self.client(service).get_paginator(operation).paginate(**request):
            yield from page.get(key, [])

    def owns(self, tags: Mapping[str, str] | None) -> bool:
        """Whether these tags are the kit's, with this seat."""
        return tags is not None and tags.items() >= as_dict(stacks.tags(self.session.seat)).items()

    # SageMaker lists by name, with an ARN and tags. word: as its API spells the type.

    def sagemaker(self, verb: str, word: str, name: str, **request) -> dict:
        """Call an operation, such as Describe, for one resource."""
        operation = getattr(self.client("sagemaker"), xform_name(f"{verb}{word}"))
        return operation(**{f"{word}Name": name}, **request)

    def summaries(self, word: str) -> dict[str, dict]:
        """Name -> summary of each whose name begins like the seat's."""
        key, name = f"{word}Summaries" if word.endswith("Job") else f"{word}s", f"{word}Name"
        request: dict[str, Any] = {"NameContains": self.prefix}
        request |= {"CreationTimeAfter": self.since} if self.since else {}
        rows = self.entries("sagemaker", xform_name(f"List{word}s"), key, **request)
        return {row[name]: row for row in rows if row[name].startswith(self.prefix)}

    def tags(self, word: str, summary: dict) -> dict[str, str]:
        """The tags of one. A separate call; AWS allows few of them per second."""
        arn = summary[f"{word}Arn"]
        return as_dict(self.entries("sagemaker", "list_tags", "Tags", ResourceArn=arn))

    def streams(self, group: str, prefix: str) -> list[str]:
        """Names of a log group's streams that begin so; none where there is no group."""
        request = {"logGroupName": group, "logStreamNamePrefix": prefix}
        with gone_is_fine():
            rows = self.entries("logs", "describe_log_streams", "logStreams", **request)
            return [stream["logStreamName"] for stream in rows]
        return []

    def stack_parts(self, stack: str, kind: str) -> list[dict]:
        """All of a type that was ever in a stack. stack: its name, or its id if it is deleted."""
        key, request = "StackResourceSummaries", {"StackName": stack}
        return [
            part
            for part in self.entries("cloudformation", "list_stack_resources", key, **request)
            if part["ResourceType"] == kind and part.get("PhysicalResourceId")
        ]


def as_dict(tags) -> dict[str, str]:
    """Tags as AWS lists them, as a dictionary."""
    return {tag["Key"]: tag["Value"] for tag in tags}


@contextlib.contextmanager
def gone_is_fine() -> Iterator[None]:
    """Pass over AWS's answer that there is no such resource."""
    try:
        yield
    except ClientError as error:
        row = error.response["Error"]
        # SageMaker has no code of its own for it: a validation error with such words.
        in_words = re.search("could not find|not found", row.get("Message", ""), re.IGNORECASE)
        if row.get("Code") not in GONE and not in_words:
            raise


class ResourceType:
    """A type of resources; all three methods may raise REFUSALS."""

    verb = "deleted"

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def list(self, account: Account) -> Iterator[Resource]:
        """Those whose names begin like the seat's."""
        raise NotImplementedError

    def price(self, account: Account, resource: Resource) -> Resource:
        """The resource with what it costs, if `list` has not said that."""
        return resource

    def delete(self, account: Account, name: str) -> None:
        """Delete one, and wait until it is gone."""
        raise NotImplementedError


class SageMakerType(ResourceType):
    """What SageMaker lists by name. word: as its API spells the type."""

    def __init__(self, kind: str, word: str) -> None:
        super().__init__(kind)
        self.word = word

    def matches(self, summary: dict) -> bool:
        """Whether a summary is of this type."""
        return True

    def list(self, account: Account) -> Iterator[Resource]:
        for name, summary in account.summaries(self.word).items():
            if self.matches(summary):
                yield Resource(self.kind, name, account.tags(self.word, summary))

    def delete(self, account: Account, name: str) -> None:
        account.sagemaker("Delete", self.word, name)

    def wait(self, account: Account, name: str, ended: Callable[[dict], bool]) -> None:
        """Wait until what Describe answers has `ended`, or is gone. Raises NotDeleted."""
        pause = PAUSE_SECONDS[account.session.target]
        with gone_is_fine():
            for _ in range(max(1, int(WAIT_SECONDS / pause))):
                if ended(description := account.sagemaker("Describe", self.word, name)):
                    return
                time.sleep(pause)
            status = description[f"{self.word}Status"]
            raise NotDeleted(f"it is still {status} after {WAIT_SECONDS} s")


class RunningJob(SageMakerType):
    """Jobs that run. limit: on what they cost; {} is the most that it can be."""

    verb = "stopped"

    def __init__(self, kind: str, word: str, limit: str) -> None:
        super().__init__(kind, word)
        self.limit, self.status = limit, f"{word}Status"

    def matches(self, summary: dict) -> bool:
        return summary[self.status] in RUNNING

    def price(self, account: Account, resource: Resource) -> Resource:
        """Their limit. A transform's instances are priced as training instances."""
        job = account.sagemaker("Describe", self.word, resource.name)
        instances = job.get("ResourceConfig") or job.get("TransformResources", {})
        max_run = job.get("StoppingCondition", {}).get("MaxRuntimeInSeconds", 86400)  # the default
        try:
            whole = cost(instances["InstanceType"], instances["InstanceCount"], 0, max_run)
            limit = f"{up_to_cents(whole.most_usd):.2f} USD"
        except (PriceNotKnown, KeyError):  # instance groups have no one type
            limit = "an unknown sum"
        return replace(resource, usd_per_month=None, note=self.limit.format(limit))

    def delete(self, account: Account, name: str) -> None:
        if account.sagemaker("Describe", self.word, name)[self.status] == "InProgress":
            account.sagemaker("Stop", self.word, name)
        self.wait(account, name, lambda job: job[self.status] not in RUNNING)


class JobRecord(SageMakerType):
    """What SageMaker remembers of a job. It proves whose the log is, so it goes after that."""

    def matches(self, summary: dict) -> bool:
        return summary["TrainingJobStatus"] not in RUNNING

    def delete(self, account: Account, name: str) -> None:
        if account.streams(TRAINING_LOGS, f"{name}/"):
            raise NotDeleted("its log is still there, and only this record tells whose it is")
        if account.sagemaker("Describe", self.word, name)["TrainingJobStatus"] != "Deleting":
            account.sagemaker("Delete", self.word, name)
        self.wait(account, name, lambda _: False)


class Endpoint(SageMakerType):
    """Instances that wait for requests, and cost by the hour, whether anybody asks them or not."""

    def price(self, account: Account, resource: Resource) -> Resource:
        config = account.sagemaker("Describe", "Endpoint", resource.name)["EndpointConfigName"]
        variants = account.sagemaker("Describe", "EndpointConfig", config)["ProductionVariants"]
        instances = [
            (variant["InstanceType"], variant.get("InitialInstanceCount", 1))
            for variant in variants
            if "InstanceType" in variant  # a serverless one costs by the request
        ]
        note = ", ".join(f"{count} x {kind}" for kind, count in instances) or "serverless"
        costs = [usd_per_month(f"endpoint {kind}", count) for kind, count in instances]
        return replace(resource, usd_per_month=total(costs), note=note)

    def delete(self, account: Account, name: str) -> None:
        """Claim the endpoint's log first, while the endpoint's own tags can prove it."""
        logs, group_name = account.client("logs"), ENDPOINT_LOGS + name
        try:
            for group in logs.describe_log_groups(logGroupNamePrefix=group_name)["logGroups"]:
                if group["logGroupName"] == group_name:
                    tags = as_dict(stacks.tags(account.session.seat))
                    logs.tag_resource(resourceArn=_group_arn(group), tags=tags)
        except ClientError as error:
            # An endpoint that stays costs more than a log that stays.
            if error.response["Error"]["Code"] not in DENIED:
                raise
        super().delete(account, name)
        self.wait(account, name, lambda _: False)


class Repositories(ResourceType):
    """Private registries of images, as cloudformation/image/build_and_push.sh makes one."""

    def list(self, account: Account) -> Iterator[Resource]:
        for row in account.entries("ecr", "describe_repositories", "repositories"):
            if (name := row["repositoryName"]).startswith(account.prefix):
                arn = row["repositoryArn"]
                tags = account.client("ecr").list_tags_for_resource(resourceArn=arn)["tags"]
                yield Resource(self.kind, name, as_dict(tags))

    def price(self, account: Account, resource: Resource) -> Resource:
        """Layers are billed by size and month. Shared ones once: this is an upper limit."""
        name = resource.name
        images = account.entries("ecr", "describe_images", "imageDetails", repositoryName=name)
        sizes = [image.get("imageSizeInBytes", 0) for image in images]
        note, size = f"{len(sizes)} image{'s' * (len(sizes) != 1)}", sum(sizes)
        return replace(resource, size=size, usd_per_month=usd_per_month("ecr", size), note=note)

    def delete(self, account: Account, name: str) -> None:
        account.client("ecr").delete_repository(repositoryName=name, force=True)


class EndpointLogs(ResourceType):
    """Log groups of endpoints: the seat's by their own tags, or by those of their endpoint."""

    def list(self, account: Account) -> Iterator[Resource]:
        request = {"logGroupNamePrefix": ENDPOINT_LOGS + account.prefix}
        groups = list(account.entries("logs", "describe_log_groups", "logGroups", **request))
        endpoints = account.summaries("Endpoint") if groups else {}
        for group in groups:
            name, size = group["logGroupName"], group.get("storedBytes", 0)
            if endpoint := endpoints.get(name.removeprefix(ENDPOINT_LOGS)):
                tags = account.tags("Endpoint", endpoint)
            else:  # the endpoint is gone: Endpoint.delete has tagged its log
                logs, arn = account.client("logs"), _group_arn(group)
                tags = logs.list_tags_for_resource(resourceArn=arn)["tags"]
            monthly = usd_per_month("logs", size)
            yield Resource(self.kind, name, tags, size=size, usd_per_month=monthly)

    def delete(self, account: Account, name: str) -> None:
        account.client("logs").delete_log_group(logGroupName=name)


class LogStreams(ResourceType):
    """The streams of a group, an entry for each job. They have no tags: their job has.

    botocore's model of DescribeLogStreams: storedBytes is reported as zero since 2019.
    """

    def __init__(self, kind: str, group: str, word: str = "") -> None:
        super().__init__(kind)
        self.group, self.word = group, word

    def owners(self, account: Account) -> dict[str, Any]:
        """Writer -> summary of the job, for the jobs that still have one."""
        return account.summaries(self.word)

    def list(self, account: Account) -> Iterator[Resource]:
        jobs = self.owners(account)
        names = account.streams(self.group, account.prefix)
        for name, count in Counter(stream.split("/")[0] for stream in names).items():
            tags, note = None, ""
            if name in jobs:
                tags = account.tags(self.word, jobs[name])
            else:
                job = xform_name(self.word).replace("_", " ")
                note = f"there is no {job} of this name whose tags could tell"
            yield self.entry(name, tags, count, note)

    def entry(self, name: str, tags: Mapping | None, count: int, note: str = "") -> Resource:
        """The streams of one writer."""
        return Resource(self.kind, name, tags, count, size=None, usd_per_month=None, note=note)

    def delete(self, account: Account, name: str) -> None:
        for stream in account.streams(self.group, f"{name}/"):
            with gone_is_fine():
                logs = account.client("logs")
                logs.delete_log_stream(logGroupName=self.group, logStreamName=stream)


class NotebookLogs(LogStreams):
    """The log streams of notebook instances. The stack that made one proves whose they are."""

    def owners(self, account: Account) -> dict[str, Any]:
        """Name -> tags of its stack, for each notebook instance that a stack has made.

        Of the stacks whose names begin like the seat's, deleted ones too: CloudFormation tells of
        those for 90 days. So a log outlives its notebook instance and still has an owner.
        """
        owners: dict[str, Any] = {}
        client = account.client("cloudformation")
        for summary in account.entries("cloudformation", "list_stacks", "StackSummaries"):
            if not summary["StackName"].startswith(account.prefix):
                continue
            stack_id = summary["StackId"]
            parts = account.stack_parts(stack_id, "AWS::SageMaker::NotebookInstance")
            # CloudFormation has a notebook instance's ARN.
            if names := [part["PhysicalResourceId"].split("/")[-1] for part in parts]:
                stack = client.describe_stacks(StackName=stack_id)["Stacks"][0]
                owners |= dict.fromkeys(names, as_dict(stack.get("Tags", [])))
        return owners

    def list(self, account: Account) -> Iterator[Resource]:
        owners = self.owners(account)
        # It may be the seat's name alone, without what follows in others.
        prefixes = [account.prefix, *(f"{name}/" for name in owners)]
        streams = {name for prefix in prefixes for name in account.streams(self.group, prefix)}
        for name, count in sorted(Counter(stream.split("/")[0] for stream in streams).items()):
            note = "no stack is known to have made a notebook instance of this name"
            tags = owners.get(name)
            yield self.entry(name, tags, count, "" if tags else note)


class Objects(ResourceType):
    """What is in each bucket of the seat: all versions, delete markers, unfinished uploads."""

    def list(self, account: Account) -> Iterator[Resource]:
        for bucket in _buckets(account, self.kind):
            if not account.owns(bucket.tags):
                continue  # a foreign bucket is named once, among the buckets
            versions = list(_versions(account, bucket.name))
            uploads = len(list(_uploads(account, bucket.name)))
            size = sum(version.get("Size", 0) for version in versions)
            note = f"{uploads} unfinished uploads, of unknown size" if uploads else ""
            if count := len(versions) + uploads:
                monthly = usd_per_month("s3", size)
                yield replace(bucket, count=count, size=size, usd_per_month=monthly, note=note)

    def delete(self, account: Account, name: str) -> None:
        s3 = account.client("s3")
        # All names first: S3 need not continue a list whose entries vanish meanwhile.
        keys = [
            {"Key": version["Key"], "VersionId": version["VersionId"]}
            for version in _versions(account, name)
        ]
        for first in range(0, len(keys), BATCH):
            batch = {"Objects": keys[first : first + BATCH], "Quiet": True}
            if errors := s3.delete_objects(Bucket=name, Delete=batch).get("Errors"):
                row = errors[0]
                raise NotDeleted(
                    f"{len(errors)} objects were refused, the first {row.get('Key')}: "
                    f"{row.get('Code')}: {row.get('Message')}"
                )
        for upload in list(_uploads(account, name)):
            with gone_is_fine():
                upload_id = upload["UploadId"]
                s3.abort_multipart_upload(Bucket=name, Key=upload["Key"], UploadId=upload_id)


class Stacks(ResourceType):
    """CloudFormation's stacks, in the order of deletion: who uses another's exports goes first."""

    def list(self, account: Account) -> Iterator[Resource]:
        order = [stacks.stack_name(account.session.seat, name) for name in reversed(stacks.ALL)]
        rows = [
            stack
            for stack in account.entries("cloudformation", "describe_stacks", "Stacks")
            if stack["StackName"].startswith(account.prefix)
            and stack["StackStatus"] != "DELETE_COMPLETE"
        ]
        tags = {stack["StackName"]: as_dict(stack.get("Tags", [])) for stack in rows}
        for name in [*(name for name in tags if name not in order), *filter(tags.get, order)]:
            yield Resource(self.kind, name, tags[name])

    def price(self, account: Account, resource: Resource) -> Resource:
        """What the parts of a stack cost while they are there, used or not."""
        (stack,) = stacks.status(account.session, (resource.name.removeprefix(account.prefix),))
        hour = hourly_cost(account.session, stack)
        notes = [name if n == 1 else f"{n} x {name}" for name, n in hour.parts.items()]
        monthly = hour.usd * HOURS_PER_MONTH
        disk = int(stack.parameters.get("VolumeSizeInGB", 0)) if stack.name == "notebook" else 0
        if disk and stack.usable:  # billed also while the instance is stopped
            monthly += idle_price("notebook-volume").per_month(disk * GB)
            notes.append(f"{disk} GB of disk")
        return replace(resource, usd_per_month=monthly, note=", ".join(notes))

    def delete(self, account: Account, name: str) -> None:
        stacks.delete(account.session, (name.removeprefix(account.prefix),), lambda _: None)


class Buckets(ResourceType):
    """Buckets that no stack of the seat holds: one that was replaced or lost left them."""

    def list(self, account: Account) -> Iterator[Resource]:
        buckets = list(_buckets(account, self.kind))
        in_stacks = set()
        if any(account.owns(bucket.tags) for bucket in buckets):
            in_stacks = {
                part["PhysicalResourceId"]
                for stack in Stacks("stacks").list(account)
                if account.owns(stack.tags)
                for part in account.stack_parts(stack.name, "AWS::S3::Bucket")
                if part["ResourceStatus"] != "DELETE_COMPLETE"
            }
        yield from (bucket for bucket in buckets if bucket.name not in in_stacks)

    def delete(self, account: Account, name: str) -> None:
        account.client("s3").delete_bucket(Bucket=name)


def total(numbers: list) -> Any:
    """The sum of numbers; None where one of them is not known."""
    return None if None in numbers else sum(numbers)


def _group_arn(group: dict) -> str:
    """A log group's ARN as the calls about tags take it: without the ":*" at its end."""
    return group.get("logGroupArn") or group["arn"].removesuffix(":*")


def _buckets(account: Account, kind: str) -> Iterator[Resource]:
    s3 = account.client("s3")
    for row in s3.list_buckets()["Buckets"]:
        if not (name := row["Name"]).startswith(account.prefix):
            continue
        region = s3.get_bucket_location(Bucket=name).get("LocationConstraint") or DEFAULT_REGION
        if region == account.session.region:
            yield Resource(kind, name, _bucket_tags(s3, name))
        else:
            note = f"it is in {region}: clean that region too, with AWS_DEFAULT_REGION"
            yield Resource(kind, name, note=note)


def _bucket_tags(s3, name: str) -> dict[str, str]:
    try:
        return as_dict(s3.get_bucket_tagging(Bucket=name)["TagSet"])
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchTagSet":
            return {}
        raise


def _versions(account: Account, bucket: str) -> Iterator[dict]:
    pages = account.client("s3").get_paginator("list_object_versions").paginate(Bucket=bucket)
    for page in pages:
        yield from page.get("Versions", [])
        yield from page.get("DeleteMarkers", [])


def _uploads(account: Account, bucket: str) -> Iterator[dict]:
    return account.entries("s3", "list_multipart_uploads", "Uploads", Bucket=bucket)


# In the order of deletion. What runs goes first: it costs most, and it writes. What proves who
# owns a resource goes after it: a job's record after its log, a stack after the objects in its
# bucket. So a run that was interrupted at any place can be finished by the next one.
WHAT_RUNS: tuple[ResourceType, ...] = (  # all but stacks that is billed by the hour
    RunningJob("running training jobs", "TrainingJob", "at most {} until max_run ends it"),
    # A transform job has no limit of its own: nobody knows what it will cost.
    RunningJob("running transform jobs", "TransformJob", "costs until it ends"),
    Endpoint("endpoints", "Endpoint"),
)
TYPES: tuple[ResourceType, ...] = (
    *WHAT_RUNS,
    SageMakerType("endpoint configurations", "EndpointConfig"),
    SageMakerType("models", "Model"),
    Repositories("image repositories"),
    EndpointLogs("log groups of endpoints"),
    LogStreams("log streams of training jobs", TRAINING_LOGS, "TrainingJob"),
    # SageMaker has no call that deletes a transform job. Its record stays, and costs nothing.
    LogStreams("log streams of transform jobs", TRANSFORM_LOGS, "TransformJob"),
    JobRecord("records of training jobs", "TrainingJob"),
    Objects("objects"),
    Stacks("stacks"),
    Buckets("buckets"),
    NotebookLogs("log streams of the notebook instance", NOTEBOOK_LOGS),
)
