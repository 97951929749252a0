"""A small evaluator of IAM identity policies: what they allow, and what they do not.

It has what the kit's policies use, with the semantics of AWS's reference
(https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html,
reference_policies_condition-single-vs-multi-valued-context-keys.html and
reference_policies_variables.html; read 2026-11-22). What it does not have it refuses with
NotImplementedError. It knows one account: no resource policies, permissions boundaries, session or
organisation policies.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

KNOWN = {"Sid", "Effect", "Action", "Resource", "Condition"}
VARIABLE = re.compile(r"\$\{([^}]*)\}")


@dataclass(frozen=True)
class Request:
    """One action on one resource. context: condition key -> a value, or a list of values."""

    action: str
    resource: str
    context: Mapping[str, Any] = field(default_factory=dict)


def allows(policies: Iterable[Mapping], request: Request) -> bool:
    """Whether a statement allows the request and none denies it: an explicit Deny wins."""
    statements = [statement for policy in policies for statement in _listed(policy["Statement"])]
    effects = {statement["Effect"] for statement in statements if _applies(statement, request)}
    return effects == {"Allow"}


def _applies(statement: Mapping, request: Request) -> bool:
    if unknown := set(statement) - KNOWN:
        raise NotImplementedError(f"policy elements {sorted(unknown)}")
    context = {key.lower(): value for key, value in request.context.items()}
    conditions = [  # all of them, so that what is not known here is noticed
        _holds(
            operator, context.get(key.lower()), [str(value) for value in _listed(values)], context
        )
        for operator, keys in statement.get("Condition", {}).items()
        for key, values in keys.items()
    ]
    action = request.action.lower()  # actions may be written in any case
    return (
        any(_like(action, value.lower(), {}) for value in _listed(statement["Action"]))
        and any(_like(request.resource, value, context) for value in _listed(statement["Resource"]))
        and all(conditions)
    )


def _holds(operator: str, actual: Any, expected: list[str], context: Mapping) -> bool:
    """Whether a condition holds. actual: what the request has under its key; None for nothing."""
    if operator == "Null":
        return any((actual is None) == (value.lower() == "true") for value in expected)
    for_all = operator.startswith("ForAllValues:")
    plain = operator.removeprefix("ForAllValues:").removesuffix("IfExists")
    if plain not in TESTS:
        raise NotImplementedError(f"the condition operator {operator}")
    if actual is None:  # AWS: IfExists and ForAllValues are true of a missing key
        return for_all or operator.endswith("IfExists")
    values = [str(value) for value in _listed(actual)]
    if not for_all and len(values) != 1:
        raise NotImplementedError(f"{operator} without ForAllValues: {values}")
    return all(
        any(TESTS[plain](value, pattern, context) for pattern in expected) for value in values
    )


def _arn_like(value: str, pattern: str, context: Mapping) -> bool:
    """Part by part: a wildcard does not reach over a colon, but in the last of the six parts."""
    pairs = list(zip(value.split(":", 5), pattern.split(":", 5), strict=False))
    return len(pairs) == 6 and all(_like(part, like, context) for part, like in pairs)


TESTS = {  # ArnEquals is the same as ArnLike
    "StringEquals": lambda value, pattern, context: (
        value == VARIABLE.sub(lambda match: _value(match[1], context), pattern)
    ),
    "NumericLessThanEquals": lambda value, limit, context: float(value) <= float(limit),
    "ArnEquals": _arn_like,
    "ArnLike": _arn_like,
}


def _like(value: str, pattern: str, context: Mapping) -> bool:
    """* and ? in the pattern; not in what its variables hold."""
    parts = [re.escape(part) for part in VARIABLE.split(pattern)]
    parts[::2] = [part.replace(r"\*", ".*").replace(r"\?", ".") for part in parts[::2]]
    names = VARIABLE.findall(pattern)
    parts[1::2] = [re.escape(_value(name, context)) for name in names]
    return bool(re.fullmatch("".join(parts), value, re.DOTALL))


def _value(name: str, context: Mapping) -> str:
    """A variable's value. One that the request lacks matches nothing."""
    value = context.get(name.lower(), "\0")
    if isinstance(value, list):
        raise NotImplementedError(f"several values in the variable {name}")
    return str(value)


def _listed(value: Any) -> list:
    return list(value) if isinstance(value, list | tuple) else [value]
