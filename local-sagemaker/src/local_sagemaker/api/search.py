"""Search for training jobs, by the properties that DescribeTrainingJob tells."""

from __future__ import annotations

import datetime
import operator
from collections.abc import Callable, Iterator
from typing import Any

from local_sagemaker.protocol.errors import validation

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "Equals": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqualTo": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqualTo": operator.le,
    "Contains": lambda actual, value: value.lower() in actual.lower(),
}


def matches(job: dict, expression: dict) -> bool:
    """Whether a job is what a SearchExpression asks for.

    job: as DescribeTrainingJob gives it, and Tags and Metrics by their names. Raises AwsError for
    what is not offered.
    """
    if expression.get("NestedFilters"):
        raise validation(
            "NestedFilters: the emulator does not offer them; give the whole path as a "
            "filter's Name, such as InputDataConfig.DataSource.S3DataSource.S3Uri."
        )
    results = [_holds(job, part) for part in expression.get("Filters", [])]
    results += [matches(job, part) for part in expression.get("SubExpressions", [])]
    return any(results) if expression.get("Operator") == "Or" and results else all(results)


def _holds(job: dict, clause: dict) -> bool:
    how, expected = clause.get("Operator", "Equals"), clause.get("Value", "")
    values = list(_values(job, clause["Name"]))
    if how in ("Exists", "NotExists"):
        return bool(values) == (how == "Exists")
    if how == "NotEquals":
        return not any(_compare("Equals", value, expected) for value in values)
    if how == "In":
        return bool({*map(str, values)} & {*expected.split(",")})
    return any(_compare(how, value, expected) for value in values)


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


def _compare(how: str, actual: Any, expected: str) -> bool:
    if isinstance(actual, bool):
        actual = str(actual).lower()
    if how == "Contains" or isinstance(actual, str):
        return COMPARE[how](str(actual), expected)
    try:
        return COMPARE[how](actual, float(expected))
    except ValueError:
        try:
            return COMPARE[how](actual, datetime.datetime.fromisoformat(expected).timestamp())
        except ValueError as error:
            raise validation(f"{expected} is neither a number nor a time (ISO 8601).") from error
