"""The seat's stacks, with what they cost, and what outlives them: buckets and notebooks' logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError

from workshop.account import stacks
from workshop.account.prices import GB, HOURS_PER_MONTH, hourly_cost, idle_price, usd_per_month
from workshop.account.resources import (
    Account,
    Listed,
    NotDeleted,
    as_dict,
    gone_is_fine,
    stream_details,
    writers,
)

MAY_COST = ("network", "notebook")  # the stacks that can cost by the hour
NOTEBOOK_LOGS = "/aws/sagemaker/NotebookInstances"
BATCH = 1000  # most keys of one DeleteObjects
DEFAULT_REGION = "us-east-1"  # S3 names every other region of a bucket, and not this one


# Stacks


def listed(account: Account) -> Iterator[Listed]:
    """CloudFormation's stacks, in the order of deletion: who uses another's exports goes first."""
    order = [stacks.stack_name(account.session.seat, name) for name in reversed(stacks.ALL)]
    found = [
        stack
        for stack in account.entries("cloudformation", "describe_stacks", "Stacks")
        if stack["StackName"].startswith(account.prefix)
        and stack["StackStatus"] != "DELETE_COMPLETE"
    ]
    tags = {stack["StackName"]: as_dict(stack.get("Tags", [])) for stack in found}
    for name in [*(name for name in tags if name not in order), *filter(tags.get, order)]:
        yield Listed(name, tags[name])


def delete(account: Account, name: str) -> None:
    """Delete a stack and wait until it is gone."""
    short = name.removeprefix(account.prefix)
    stacks.delete(account.session, (short,), say=lambda _: None)


def cost(account: Account, name: str) -> dict[str, Any]:
    """What the parts of a stack cost while they are there, used or not."""
    (stack,) = stacks.status(account.session, (name.removeprefix(account.prefix),))
    found = hourly_cost(account.session, stack)
    note = ", ".join(
        part if count == 1 else f"{count} x {part}" for part, count in found.parts.items()
    )
    disk = int(stack.parameters.get("VolumeSizeInGB", 0)) if stack.name == "notebook" else 0
    monthly = found.usd * HOURS_PER_MONTH
    if disk and stack.usable:  # billed also while the instance is stopped
        monthly += idle_price("notebook-volume").per_month(disk * GB)
        note = ", ".join(filter(None, [note, f"{disk} GB of disk"]))
    return {
        "usd_per_month": monthly,
        "usd_per_hour": found.usd,
        "note": note,
    }


# Buckets, and the objects in them


def objects(account: Account) -> Iterator[Listed]:
    """What is in each bucket of the seat: all versions, delete markers, unfinished uploads."""
    for name, owner, _ in _buckets(account):
        if not account.owns(owner):
            continue  # a foreign bucket is named once, among the buckets
        versions = list(_versions(account, name))
        uploads = len(list(_uploads(account, name)))
        size = sum(version.get("Size", 0) for version in versions)
        note = f"{uploads} unfinished uploads, of unknown size" if uploads else ""
        if count := len(versions) + uploads:
            details = {"count": count, "size": size, "usd_per_month": usd_per_month("s3", size)}
            yield Listed(name, owner, details | {"note": note})


def delete_objects(account: Account, bucket: str) -> None:
    """Empty a bucket."""
    s3 = account.client("s3")
    # All names first: S3 need not continue a list whose entries vanish meanwhile.
    keys = [
        {"Key": version["Key"], "VersionId": version["VersionId"]}
        for version in _versions(account, bucket)
    ]
    for first in range(0, len(keys), BATCH):
        batch = {"Objects": keys[first : first + BATCH], "Quiet": True}
        answer = s3.delete_objects(Bucket=bucket, Delete=batch)
        if errors := answer.get("Errors"):
            told = errors[0]
            raise NotDeleted(
                f"{len(errors)} objects were refused, the first {told.get('Key')}: "
                f"{told.get('Code')}: {told.get('Message')}"
            )
    for upload in list(_uploads(account, bucket)):
        with gone_is_fine():
            s3.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])


def buckets(account: Account) -> Iterator[Listed]:
    """Buckets that no stack of the seat holds: one that was replaced or lost left them."""
    found = list(_buckets(account))
    held = _held_buckets(account) if any(account.owns(owner) for _, owner, _ in found) else set()
    yield from (bucket for bucket in found if bucket.name not in held)


def delete_bucket(account: Account, name: str) -> None:
    account.client("s3").delete_bucket(Bucket=name)


def _buckets(account: Account) -> Iterator[Listed]:
    s3 = account.client("s3")
    for bucket in s3.list_buckets()["Buckets"]:
        if not (name := bucket["Name"]).startswith(account.prefix):
            continue
        there = s3.get_bucket_location(Bucket=name).get("LocationConstraint") or DEFAULT_REGION
        if there == account.session.region:
            yield Listed(name, _bucket_tags(s3, name))
        else:
            yield Listed(name, f"it is in {there}: clean that region too, with AWS_DEFAULT_REGION")


def _bucket_tags(s3, name: str) -> dict[str, str]:
    try:
        return as_dict(s3.get_bucket_tagging(Bucket=name)["TagSet"])
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchTagSet":
            return {}
        raise


def _held_buckets(account: Account) -> set[str]:
    """The buckets that a stack of the seat holds: they are deleted with it."""
    return {
        part["PhysicalResourceId"]
        for stack, tags, _ in listed(account)
        if account.owns(tags)
        for part in _parts(account, stack, "AWS::S3::Bucket")
        if part["ResourceStatus"] != "DELETE_COMPLETE"
    }


def _versions(account: Account, bucket: str) -> Iterator[dict]:
    pages = account.client("s3").get_paginator("list_object_versions").paginate(Bucket=bucket)
    for page in pages:
        yield from page.get("Versions", [])
        yield from page.get("DeleteMarkers", [])


def _uploads(account: Account, bucket: str) -> Iterator[dict]:
    return account.entries("s3", "list_multipart_uploads", "Uploads", Bucket=bucket)


# Logs of notebook instances


def notebook_logs(account: Account) -> Iterator[Listed]:
    """The log streams of notebook instances. The stack that made one proves whose they are."""
    owners, counts = _notebooks(account), writers(account, NOTEBOOK_LOGS, account.prefix)
    for name in owners:  # it may be the seat's name alone, without what follows in others
        counts |= writers(account, NOTEBOOK_LOGS, f"{name}/")
    for name, count in counts.items():
        unknown = "no stack is known to have made a notebook instance of this name"
        yield Listed(name, owners.get(name, unknown), stream_details(count))


def _notebooks(account: Account) -> dict[str, dict[str, str]]:
    """Name -> tags of its stack, for each notebook instance that a stack has made.

    Of the stacks whose names begin like the seat's, deleted ones too: CloudFormation tells of
    those for 90 days. So a log outlives its notebook instance and still has an owner.
    """
    found = {}
    for summary in account.entries("cloudformation", "list_stacks", "StackSummaries"):
        if not summary["StackName"].startswith(account.prefix):
            continue
        stack_id = summary["StackId"]
        made = _parts(account, stack_id, "AWS::SageMaker::NotebookInstance")
        # CloudFormation has a notebook instance's ARN.
        if names := [part["PhysicalResourceId"].split("/")[-1] for part in made]:
            client = account.client("cloudformation")
            stack = client.describe_stacks(StackName=stack_id)["Stacks"][0]
            found |= dict.fromkeys(names, as_dict(stack.get("Tags", [])))
    return found


def _parts(account: Account, stack: str, kind: str) -> list[dict]:
    """All of a kind that was ever in a stack. stack: its name, or its id where it is deleted."""
    key, where = "StackResourceSummaries", {"StackName": stack}
    return [
        part
        for part in account.entries("cloudformation", "list_stack_resources", key, **where)
        if part["ResourceType"] == kind and part.get("PhysicalResourceId")
    ]
