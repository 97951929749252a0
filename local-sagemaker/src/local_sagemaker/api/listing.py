"""What all List calls have in common: filters, order, pages. And Search's expressions."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

from local_sagemaker.protocol.errors import validation

PAGE = 100


def page(records: list, request: dict, member: str, summary: Callable[[Any], dict]) -> dict:
    """The answer: a page of summaries as `member`, and the token of the next one if there is one.

    records: with `name`, `status`, and `data` that has created and modified (Unix seconds).
    Raises AwsError for an invalid token or time.
    """
    listed = [record for record in records if _matches(record, request)]
    key = {"Name": lambda record: record.name, "Status": lambda record: record.status}.get(
        request.get("SortBy", "CreationTime"), lambda record: record.data["created"]
    )
    listed.sort(key=key, reverse=request.get("SortOrder", "Descending") == "Descending")
    start = _start(request)
    end = start + request.get("MaxResults", PAGE)
    answer: dict[str, Any] = {member: [summary(record) for record in listed[start:end]]}
    if end < len(listed):
        answer["NextToken"] = base64.b64encode(str(end).encode()).decode()
    return answer


def _matches(record, request: dict) -> bool:
    data = record.data
    return (
        request.get("StatusEquals") in (None, record.status)
        and request.get("NameContains", "").lower() in record.name.lower()
        and data["created"] >= _time(request, "CreationTimeAfter", 0)
        and data["created"] <= _time(request, "CreationTimeBefore", float("inf"))
        and data["modified"] >= _time(request, "LastModifiedTimeAfter", 0)
        and data["modified"] <= _time(request, "LastModifiedTimeBefore", float("inf"))
    )


def _time(request: dict, name: str, default: float) -> float:
    try:
        return float(request.get(name, default))
    except ValueError as error:
        raise validation(f"{name} is not a time in seconds.") from error


def _start(request: dict) -> int:
    token = request.get("NextToken")
    if token is None:
        return 0
    try:
        start = int(base64.b64decode(token, validate=True))
        if start < 0:
            raise ValueError(start)
        return start
    except ValueError as error:
        raise validation("NextToken is not one that this service gave.") from error


def matches(job: dict, expression: dict) -> bool:
    """Whether a job is what a SearchExpression asks for.

    job: as DescribeTrainingJob gives it, and Tags and Metrics by their names. Raises AwsError for
    what is not offered.
    """
    if expression.get("NestedFilters") or expression.get("SubExpressions"):
        raise validation(
            "NestedFilters and SubExpressions: the emulator does not offer them; give the whole "
            "path as a filter's Name, such as InputDataConfig.DataSource.S3DataSource.S3Uri."
        )
    results = [_holds(job, part) for part in expression.get("Filters", [])]
    return any(results) if expression.get("Operator") == "Or" and results else all(results)


def _holds(job: dict, clause: dict) -> bool:
    how, expected = clause.get("Operator", "Equals"), clause.get("Value", "")
    values = [
        str(value).lower() if isinstance(value, bool) else str(value)
        for value in _values(job, clause["Name"])
    ]
    match how:
        case "Equals":
            return expected in values
        case "NotEquals":
            return expected not in values
        case "In":
            return bool({*values} & {*expected.split(",")})
        case "Contains":
            return any(expected.lower() in value.lower() for value in values)
        case "Exists" | "NotExists":
            return bool(values) == (how == "Exists")
    raise validation(f"Operator {how}: the emulator compares for equality only.")


def _values(node: Any, path: str) -> Iterator[Any]:
    """What a dotted path leads to; through a list, of each of its elements."""
    if isinstance(node, list):
        for item in node:
            yield from _values(item, path)
    elif not path:
        yield node
    elif isinstance(node, dict):
        if path in node:  # a hyperparameter's name may have dots
            yield from _values(node[path], "")
        else:
            name, _, rest = path.partition(".")
            yield from _values(node.get(name, []), rest)
