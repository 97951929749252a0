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
    "Contains": lambda found, value: value.lower() in found.lower(),
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
    found = [_holds(job, one) for one in expression.get("Filters", [])]
    found += [matches(job, one) for one in expression.get("SubExpressions", [])]
    return any(found) if expression.get("Operator") == "Or" and found else all(found)


def _holds(job: dict, one: dict) -> bool:
    how, wanted = one.get("Operator", "Equals"), one.get("Value", "")
    values = list(_values(job, one["Name"]))
    if how in ("Exists", "NotExists"):
        return bool(values) == (how == "Exists")
    if how == "NotEquals":
        return not any(_compare("Equals", value, wanted) for value in values)
    if how == "In":
        return bool({*map(str, values)} & {*wanted.split(",")})
    return any(_compare(how, value, wanted) for value in values)


def _values(node: Any, path: str) -> Iterator[Any]:
    """What a dotted path leads to; through a list, of each of its elements."""
    if isinstance(node, list):
        for one in node:
            yield from _values(one, path)
    elif not path:
        yield node
    elif isinstance(node, dict):
        if path in node:  # a hyperparameter's name may have dots
            yield from _values(node[path], "")
        else:
            name, _, rest = path.partition(".")
            yield from _values(node.get(name, []), rest)


def _compare(how: str, found: Any, wanted: str) -> bool:
    if isinstance(found, bool):
        found = str(found).lower()
    if how == "Contains" or isinstance(found, str):
        return COMPARE[how](str(found), wanted)
    try:
        return COMPARE[how](found, float(wanted))
    except ValueError:
        try:
            return COMPARE[how](found, datetime.datetime.fromisoformat(wanted).timestamp())
        except ValueError as error:
            raise validation(f"{wanted} is neither a number nor a time (ISO 8601).") from error
