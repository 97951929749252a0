"""What SageMaker's calls have in common: ARNs, summaries, pages of lists, Search's filters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID

from local_sagemaker.protocol.errors import validation

PAGE = 100


def arn_of(kind: str, name: str, region: str) -> str:
    """kind: such as "training-job"."""
    return f"arn:aws:sagemaker:{region}:{DEFAULT_ACCOUNT_ID}:{kind}/{name.lower()}"


def page(records: list, request: dict, member: str, row: Callable[[Any], dict]) -> dict:
    """The answer: a page of rows as `member`, and the token of the next one if there is one.

    records: with `name`, `status`, and `data` that has created and modified (Unix seconds).
    Raises AwsError for an invalid token.
    """
    listed = [record for record in records if _matches(record, request)]
    key = {"Name": lambda record: record.name, "Status": lambda record: record.status}.get(
        request.get("SortBy", "CreationTime"), lambda record: record.data["created"]
    )
    listed.sort(key=key, reverse=request.get("SortOrder", "Descending") == "Descending")
    start = _start(request)
    end = start + request.get("MaxResults", PAGE)
    answer: dict[str, Any] = {member: [row(record) for record in listed[start:end]]}
    if end < len(listed):
        answer["NextToken"] = str(end)
    return answer


def summary(record: Any, kind: str) -> dict:
    """What descriptions and lists say of every record. kind: "TrainingJob", "Endpoint", ..."""
    data = record.data
    answer = {
        f"{kind}Name": record.name,
        f"{kind}Arn": data["arn"],
        "CreationTime": data["created"],
        "LastModifiedTime": data["modified"],
        f"{kind}Status": record.status,
    }
    if "ended" in data:
        answer[f"{kind.removesuffix('Job')}EndTime"] = data["ended"]
    return answer


def _matches(record, request: dict) -> bool:
    data = record.data
    return (
        request.get("StatusEquals") in (None, record.status)
        and request.get("NameContains", "").lower() in record.name.lower()
        and data["created"] >= request.get("CreationTimeAfter", 0)
        and data["created"] <= request.get("CreationTimeBefore", math.inf)
        and data["modified"] >= request.get("LastModifiedTimeAfter", 0)
        and data["modified"] <= request.get("LastModifiedTimeBefore", math.inf)
    )


def _start(request: dict) -> int:
    token = request.get("NextToken", "0")
    if not token.isdecimal():
        raise validation("NextToken is not one that this service gave.")
    return int(token)


def matches(job: dict, expression: dict) -> bool:
    """Whether a job is what a SearchExpression asks for: every filter's property has its value.

    job: as DescribeTrainingJob gives it, and Tags by their keys. Raises AwsError for what is not
    offered.
    """
    if expression.keys() - {"Filters"}:
        raise validation("Search: the emulator takes a list of Filters, which all have to hold.")
    return all(_holds(job, clause) for clause in expression.get("Filters", []))


def _holds(job: dict, clause: dict) -> bool:
    if clause.get("Operator", "Equals") != "Equals":
        raise validation(f"Operator {clause['Operator']}: the emulator compares for equality only.")
    value: Any = job
    for name in clause["Name"].split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value is not None and str(value).lower() == clause.get("Value", "").lower()
