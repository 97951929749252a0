"""Resources in an account: how SageMaker, its logs and ECR list, price and delete them.

Names of log groups and streams:
https://docs.aws.amazon.com/sagemaker/latest/dg/logging-cloudwatch.html
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from botocore import xform_name
from botocore.exceptions import BotoCoreError, ClientError, WaiterError
from botocore.waiter import WaiterModel, create_waiter_with_client

from workshop.account import stacks
from workshop.account.prices import HOURS_PER_MONTH, PriceNotKnown, cost, usd_per_month
from workshop.jobs.follow import POLL_SECONDS
from workshop.jobs.logs import LOG_GROUP as TRAINING_LOGS

WAIT_SECONDS = 10 * 60  # AWS gives a job 120 s to end, and uploads what it left
TRANSFORM_LOGS = "/aws/sagemaker/TransformJobs"
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
SUMMARIES = {"TrainingJob": "TrainingJobSummaries", "TransformJob": "TransformJobSummaries"}
# What botocore has no waiter for, in botocore's own form; `wait` sets how often they ask.
_ASK = {"operation": "DescribeTrainingJob", "delay": 1, "maxAttempts": 1}
_IS_WARM = "WarmPoolStatus.Status == 'Available'"
_NO_JOB = [
    {"matcher": "error", "expected": code, "state": "success"}
    for code in ("ResourceNotFound", "ValidationException")
]
_NO_POOL = [{"matcher": "path", "argument": _IS_WARM, "expected": False, "state": "success"}]
OWN_WAITERS = WaiterModel(
    {
        "version": 2,
        "waiters": {
            "TrainingJobDeleted": _ASK | {"acceptors": _NO_JOB},
            "WarmPoolEnded": _ASK | {"acceptors": _NO_POOL},
        },
    }
)


class NotDeleted(Exception):
    """A resource cannot go yet; the message says why."""


# What may go wrong with one resource while the rest is worked on.
REFUSALS = (ClientError, BotoCoreError, stacks.StackError, NotDeleted)


class Listed(NamedTuple):
    """A resource whose name begins like the seat's.

    owner: its tags, or a sentence: why nobody can tell. details: fields of OwnedResource.
    """

    name: str
    owner: Mapping[str, str] | str
    details: Mapping[str, Any] = {}


@dataclass(frozen=True)
class OwnedResource:
    """Something that the seat has.

    kind: what it is, in the plural. count: how many, where one entry stands for several.
    size: bytes; None: AWS does not tell. usd_per_month: what it costs while it stays; None: not
    known. usd_per_hour: for what is billed by the hour, used or not; None: by the hour, at a price
    that is not known.
    """

    kind: str
    name: str
    count: int = 1
    size: int | None = 0
    usd_per_month: float | None = 0.0
    usd_per_hour: float | None = 0.0
    note: str = ""


class Account:
    """A session's account. Clients are made once: a run asks some of them dozens of times.

    since: of jobs and endpoints, only those that were made after it.
    """

    def __init__(self, session, since: datetime | None = None) -> None:
        self.session, self.prefix, self.since = session, session.job_prefix, since
        self.client = cache(session.client)

    def entries(self, service: str, operation: str, key: str, **request) -> Iterator[dict]:
        """What an operation lists under `key`, of all its pages."""
        for page in self.client(service).get_paginator(operation).paginate(**request):
            yield from page.get(key, [])

    def owns(self, owner: Mapping[str, str] | str) -> bool:
        """Whether these tags are the kit's, with this seat."""
        own = as_dict(stacks.tags(self.session.seat))
        return not isinstance(owner, str) and owner.items() >= own.items()

    def sagemaker(self, operation: str, **request) -> dict:
        """Call SageMaker. operation: as its API spells it."""
        return getattr(self.client("sagemaker"), xform_name(operation))(**request)


def as_dict(listed: list[dict]) -> dict[str, str]:
    """Tags as AWS lists them, as a dictionary."""
    return {tag["Key"]: tag["Value"] for tag in listed}


@contextlib.contextmanager
def gone_is_fine() -> Iterator[None]:
    """Pass over AWS's answer that there is no such resource."""
    try:
        yield
    except ClientError as error:
        told = error.response["Error"]
        # SageMaker has no code of its own for it: a validation error with such words.
        says_so = re.search("could not find|not found", told.get("Message", ""), re.IGNORECASE)
        if told.get("Code") not in GONE and not says_so:
            raise


def wait(account: Account, waiter: str, word: str, name: str) -> None:
    """Wait by one of botocore's waiters, or of OWN_WAITERS. Raises NotDeleted, ClientError.

    word: "TrainingJob", "Endpoint"... as SageMaker's API spells it.
    """
    client = account.client("sagemaker")
    if waiter in OWN_WAITERS.waiter_names:
        found = create_waiter_with_client(waiter, OWN_WAITERS, client)
    else:
        found = client.get_waiter(xform_name(waiter))
    delay = POLL_SECONDS[account.session.target == "local"]
    config = {"Delay": delay, "MaxAttempts": max(1, int(WAIT_SECONDS / delay))}
    try:
        found.wait(**{f"{word}Name": name}, WaiterConfig=config)
    except WaiterError as error:
        if "Error" in error.last_response:  # refused, or there is no such resource any more
            raise ClientError(error.last_response, f"Describe{word}") from error
        status = error.last_response[f"{word}Status"]
        if status == "Failed" and waiter.endswith("CompletedOrStopped"):
            return  # a job that failed has ended, too
        raise NotDeleted(f"it is still {status} after {WAIT_SECONDS} s") from error


# SageMaker: what it lists by name, with an ARN and tags. word: as its API spells the thing.


def named(account: Account, word: str) -> dict[str, dict]:
    """Name -> summary of each whose name begins like the seat's."""
    key, name = SUMMARIES.get(word, f"{word}s"), f"{word}Name"
    which = {"NameContains": account.prefix}
    which |= {"CreationTimeAfter": account.since} if account.since else {}
    found = account.entries("sagemaker", xform_name(f"List{word}s"), key, **which)
    return {one[name]: one for one in found if one[name].startswith(account.prefix)}


def tags_of(account: Account, word: str, summary: dict) -> dict[str, str]:
    """The tags of one. A separate call; AWS allows few of them per second."""
    arn = summary[f"{word}Arn"]
    return as_dict(account.entries("sagemaker", "list_tags", "Tags", ResourceArn=arn))


def listed(account: Account, word: str, wanted: Callable[[dict], bool] = bool) -> Iterator[Listed]:
    """Those for whose summary `wanted` holds."""
    for name, summary in named(account, word).items():
        if wanted(summary):
            yield Listed(name, tags_of(account, word, summary))


def delete(account: Account, name: str, word: str) -> None:
    """Delete one that is gone at once."""
    account.sagemaker(f"Delete{word}", **{f"{word}Name": name})


def stop(account: Account, name: str, word: str) -> None:
    """Stop a job, and wait for its end."""
    job = {f"{word}Name": name}
    if account.sagemaker(f"Describe{word}", **job)[f"{word}Status"] == "InProgress":
        account.sagemaker(f"Stop{word}", **job)
    wait(account, f"{word}CompletedOrStopped", word, name)


def job_cost(account: Account, name: str, word: str, note: str) -> dict[str, Any]:
    """What the instances of a job cost an hour, while it runs or while they are kept warm.

    A transform's are priced as training instances: prices.toml has no row of their own.
    """
    found = account.sagemaker(f"Describe{word}", **{f"{word}Name": name})
    of = found.get("ResourceConfig") or found.get("TransformResources", {})
    limit = found.get("StoppingCondition", {}).get("MaxRuntimeInSeconds", 86400)  # AWS's default
    try:
        priced = cost(of["InstanceType"], of["InstanceCount"], 3600, limit)
    except (PriceNotKnown, KeyError):  # instance groups have no one type
        return {"usd_per_month": None, "usd_per_hour": None, "note": note.format("an unknown sum")}
    most = f"{priced.most_usd:.2f} USD"
    return {"usd_per_month": None, "usd_per_hour": priced.usd, "note": note.format(most)}


def is_warm(job: dict) -> bool:
    """Whether a job's instances wait for a next one."""
    return job.get("WarmPoolStatus", {}).get("Status") == "Available"


def end_warm_pool(account: Account, name: str) -> None:
    """There is no call that deletes a pool: it ends when it is to be kept for 0 seconds."""
    none = {"KeepAlivePeriodInSeconds": 0}
    account.sagemaker("UpdateTrainingJob", TrainingJobName=name, ResourceConfig=none)
    wait(account, "WarmPoolEnded", "TrainingJob", name)


def delete_record(account: Account, name: str) -> None:
    """Delete what SageMaker remembers of a job. It proves whose the log is: so it goes after it."""
    if streams(account, TRAINING_LOGS, f"{name}/"):
        raise NotDeleted("its log is still there, and only this record tells whose it is")
    status = account.sagemaker("DescribeTrainingJob", TrainingJobName=name)["TrainingJobStatus"]
    if status != "Deleting":
        account.sagemaker("DeleteTrainingJob", TrainingJobName=name)
    wait(account, "TrainingJobDeleted", "TrainingJob", name)


def delete_endpoint(account: Account, name: str) -> None:
    """Give back the instances that wait for requests; claim their log before."""
    _claim_log(account, name)
    account.sagemaker("DeleteEndpoint", EndpointName=name)
    wait(account, "EndpointDeleted", "Endpoint", name)


def endpoint_cost(account: Account, name: str) -> dict[str, Any]:
    """Instances cost by the hour, whether anybody asks them or not."""
    config = account.sagemaker("DescribeEndpoint", EndpointName=name)["EndpointConfigName"]
    found = account.sagemaker("DescribeEndpointConfig", EndpointConfigName=config)
    instances = [
        (variant["InstanceType"], variant.get("InitialInstanceCount", 1))
        for variant in found["ProductionVariants"]
        if "InstanceType" in variant  # a serverless one costs by the request
    ]
    costs = [usd_per_month(f"endpoint {kind}", count) for kind, count in instances]
    note = ", ".join(f"{count} x {kind}" for kind, count in instances) or "serverless"
    monthly = None if None in costs else sum(costs)
    hourly = None if monthly is None else monthly / HOURS_PER_MONTH
    return {"usd_per_month": monthly, "usd_per_hour": hourly, "note": note}


# Logs. Streams carry no tags: they are the seat's when their job or notebook instance is.


def streams(account: Account, group: str, prefix: str) -> list[str]:
    """Names of a group's streams that begin so; none where there is no group."""
    where = {"logGroupName": group, "logStreamNamePrefix": prefix}
    with gone_is_fine():
        found = account.entries("logs", "describe_log_streams", "logStreams", **where)
        return [stream["logStreamName"] for stream in found]
    return []


def writers(account: Account, group: str, prefix: str) -> Counter[str]:
    """Job or notebook instance -> its number of streams, of those that begin so."""
    return Counter(name.split("/")[0] for name in streams(account, group, prefix))


def stream_details(count: int) -> dict[str, Any]:
    """botocore's model of DescribeLogStreams: storedBytes is reported as zero since 2019."""
    return {"count": count, "size": None, "usd_per_month": None}


def job_logs(account: Account, word: str, group: str) -> Iterator[Listed]:
    """The streams of jobs, an entry a job."""
    job = {"TrainingJob": "training job", "TransformJob": "transform job"}[word]
    jobs = named(account, word)
    for name, count in writers(account, group, account.prefix).items():
        if name in jobs:
            owner = tags_of(account, word, jobs[name])
        else:
            owner = f"there is no {job} of this name whose tags could tell"
        yield Listed(name, owner, stream_details(count))


def delete_streams(account: Account, writer: str, group: str) -> None:
    """Delete the streams of one job or notebook instance."""
    for name in streams(account, group, f"{writer}/"):
        with gone_is_fine():
            account.client("logs").delete_log_stream(logGroupName=group, logStreamName=name)


def endpoint_logs(account: Account) -> Iterator[Listed]:
    """The log groups of endpoints: the seat's by their own tags, or by those of their endpoint."""
    where = {"logGroupNamePrefix": ENDPOINT_LOGS + account.prefix}
    groups = list(account.entries("logs", "describe_log_groups", "logGroups", **where))
    endpoints = named(account, "Endpoint") if groups else {}
    for group in groups:
        name, size = group["logGroupName"], group.get("storedBytes", 0)
        if endpoint := endpoints.get(name.removeprefix(ENDPOINT_LOGS)):
            tags = tags_of(account, "Endpoint", endpoint)
        else:  # the endpoint is gone: `delete_endpoint` has tagged its log
            tags = account.client("logs").list_tags_for_resource(resourceArn=_arn(group))["tags"]
        yield Listed(name, tags, {"size": size, "usd_per_month": usd_per_month("logs", size)})


def delete_log_group(account: Account, name: str) -> None:
    account.client("logs").delete_log_group(logGroupName=name)


def _claim_log(account: Account, endpoint: str) -> None:
    """Tag the endpoint's log group as ours, while the endpoint's own tags can prove it."""
    logs, own = account.client("logs"), as_dict(stacks.tags(account.session.seat))
    name = ENDPOINT_LOGS + endpoint
    try:
        for group in logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]:
            if group["logGroupName"] == name:
                logs.tag_resource(resourceArn=_arn(group), tags=own)
    except ClientError as error:
        # An endpoint that stays costs more than a log that stays.
        if error.response["Error"]["Code"] not in DENIED:
            raise


def _arn(group: dict) -> str:
    """A log group's ARN as the calls about tags want it: without the ":*" at its end."""
    return group.get("logGroupArn") or group["arn"].removesuffix(":*")


# ECR: what cloudformation/image/build_and_push.sh makes.


def repositories(account: Account) -> Iterator[Listed]:
    """Private registries of images."""
    for found in account.entries("ecr", "describe_repositories", "repositories"):
        if (name := found["repositoryName"]).startswith(account.prefix):
            arn = found["repositoryArn"]
            tags = account.client("ecr").list_tags_for_resource(resourceArn=arn)["tags"]
            yield Listed(name, as_dict(tags))


def repository_cost(account: Account, name: str) -> dict[str, Any]:
    """Layers are billed by size and month. Shared ones once: this is the most that it can be."""
    images = account.entries("ecr", "describe_images", "imageDetails", repositoryName=name)
    sizes = [image.get("imageSizeInBytes", 0) for image in images]
    note = f"{len(sizes)} image{'s' * (len(sizes) != 1)}"
    return {"size": sum(sizes), "usd_per_month": usd_per_month("ecr", sum(sizes)), "note": note}


def delete_repository(account: Account, name: str) -> None:
    """With all its images."""
    account.client("ecr").delete_repository(repositoryName=name, force=True)
