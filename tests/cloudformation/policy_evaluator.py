"""A small evaluator of IAM identity policies: what they allow, and what they do not.

It has what the kit's policies use, with the semantics of AWS's reference
(https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html,
reference_policies_condition-single-vs-multi-valued-context-keys.html and
reference_policies_variables.html; read 2026-11-22). What it does not have it refuses with
NotImplementedError: nothing is passed over in silence. It knows one account: no resource policies,
permissions boundaries, session or organisation policies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

ALLOWED, DENIED, FORBIDDEN = "allowed", "denied", "forbidden"  # nobody allows it; a Deny does
KNOWN = {"Sid", "Effect", "Action", "Resource", "Condition"}
VARIABLE = re.compile(r"\$\{([^}]*)\}")


@dataclass(frozen=True)
class Request:
    """One action on one resource. context: condition key -> a value, or a list of values."""

    action: str
    resource: str
    context: Mapping[str, Any] = field(default_factory=dict)


def decision(policies: Iterable[Mapping], request: Request) -> str:
    """ALLOWED, FORBIDDEN (an explicit Deny, which wins) or DENIED (by default).

    policies: documents, as dictionaries. Raises NotImplementedError for what is not known here.
    """
    effects = {
        statement["Effect"]
        for policy in policies
        for statement in _listed(policy["Statement"])
        if applies(statement, request)
    }
    if "Deny" in effects:
        return FORBIDDEN
    return ALLOWED if "Allow" in effects else DENIED


def applies(statement: Mapping, request: Request) -> bool:
    """Whether a statement speaks of a request."""
    if unknown := set(statement) - KNOWN:
        raise NotImplementedError(f"policy elements {sorted(unknown)}")
    context = {key.lower(): value for key, value in request.context.items()}
    holds = [  # all of them, so that what is not known here is noticed
        _holds(
            operator, context.get(key.lower()), [str(entry) for entry in _listed(expected)], context
        )
        for operator, keys in statement.get("Condition", {}).items()
        for key, expected in keys.items()
    ]
    action = request.action.lower()  # actions may be written in any case
    return (
        any(_like(action, entry.lower(), {}) for entry in _listed(statement["Action"]))
        and any(_like(request.resource, entry, context) for entry in _listed(statement["Resource"]))
        and all(holds)
    )


def _holds(operator: str, actual: Any, expected: list[str], context: Mapping) -> bool:
    """Whether one condition holds. held: what the request has under its key; None for nothing."""
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
    return all(any(TESTS[plain](value, entry, context) for entry in expected) for value in values)


def _arn_like(value: str, pattern: str, context: Mapping) -> bool:
    """Part by part: a wildcard does not reach over a colon, but in the last of the six parts."""
    parts, expected = value.split(":", 5), pattern.split(":", 5)
    return len(parts) == len(expected) == 6 and all(
        _like(part, entry, context) for part, entry in zip(parts, expected, strict=True)
    )


TESTS = {  # ArnEquals is the same as ArnLike
    "StringEquals": lambda value, entry, context: (
        value == VARIABLE.sub(lambda variables: _value(variables[1], context), entry)
    ),
    "NumericLessThanEquals": lambda value, entry, context: float(value) <= float(entry),
    "ArnEquals": _arn_like,
    "ArnLike": _arn_like,
}


def _like(value: str, pattern: str, context: Mapping) -> bool:
    """* and ? in the pattern; not in what its variables hold."""
    parts = []
    for number, part in enumerate(VARIABLE.split(pattern)):
        if number % 2:
            parts.append(re.escape(_value(part, context)))
        else:
            parts.append(re.escape(part).replace(r"\*", ".*").replace(r"\?", "."))
    return bool(re.fullmatch("".join(parts), value, re.DOTALL))


def _value(name: str, context: Mapping) -> str:
    """A variable's value. One that the request lacks matches nothing."""
    actual = context.get(name.lower(), "\0")
    if isinstance(actual, list):
        raise NotImplementedError(f"several values in the variable {name}")
    return str(actual)


def _listed(value: Any) -> list:
    return list(value) if isinstance(value, list | tuple) else [value]
