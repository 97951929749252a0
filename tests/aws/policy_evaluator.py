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
KNOWN = {"Sid", "Effect", "Action", "NotAction", "Resource", "NotResource", "Condition"}
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
    if "Action" in statement:
        of_action = _any_like(statement["Action"], request.action, {}, fold=True)
    else:
        of_action = not _any_like(statement["NotAction"], request.action, {}, fold=True)
    if "Resource" in statement:
        of_resource = _any_like(statement["Resource"], request.resource, context)
    else:
        of_resource = not _any_like(statement["NotResource"], request.resource, context)
    return of_action and of_resource and _holds(statement.get("Condition", {}), context)


def _holds(conditions: Mapping, context: Mapping) -> bool:
    """All operators and keys must hold. A key without a value in the request: see `_one`."""
    results = [
        _one(operator, context.get(key.lower()), [str(value) for value in _listed(wanted)], context)
        for operator, keys in conditions.items()
        for key, wanted in keys.items()
    ]
    return all(results)


def _one(operator: str, held: Any, wanted: list[str], context: Mapping) -> bool:
    for_all, for_any = operator.startswith("ForAllValues:"), operator.startswith("ForAnyValue:")
    plain = operator.removeprefix("ForAllValues:").removeprefix("ForAnyValue:")
    if_exists = plain.endswith("IfExists")
    plain = plain.removesuffix("IfExists")
    if plain == "Null":
        return any((held is None) == (value.lower() == "true") for value in wanted)
    negated = "Not" in plain
    test = _test(plain.replace("Not", ""))
    if held is None:
        # AWS: IfExists and ForAllValues are true of a missing key; what is negated, too.
        return if_exists or for_all or (negated and not for_any)
    values = [str(value) for value in _listed(held)]
    if not (for_all or for_any) and len(values) != 1:
        raise NotImplementedError(f"{operator} without ForAllValues or ForAnyValue: {values}")

    def matches(value: str) -> bool:
        found = any(test(value, one, context) for one in wanted)
        return not found if negated else found

    return any(map(matches, values)) if for_any else all(map(matches, values))


def _test(operator: str):
    if operator not in TESTS:
        raise NotImplementedError(f"the condition operator {operator}")
    return TESTS[operator]


def _arn_like(value: str, pattern: str, context: Mapping) -> bool:
    """Part by part: a wildcard does not reach over a colon, but in the last of the six parts."""
    parts, wanted = value.split(":", 5), pattern.split(":", 5)
    return len(parts) == len(wanted) == 6 and all(
        _like(part, one, context) for part, one in zip(parts, wanted, strict=True)
    )


TESTS = {  # without the "Not" of their negations; ArnEquals is the same as ArnLike
    "StringEquals": lambda value, one, context: value == _filled(one, context),
    "StringEqualsIgnoreCase": lambda value, one, context: (
        value.lower() == _filled(one, context).lower()
    ),
    "StringLike": lambda value, one, context: _like(value, one, context),
    "NumericEquals": lambda value, one, context: float(value) == float(one),
    "NumericLessThan": lambda value, one, context: float(value) < float(one),
    "NumericLessThanEquals": lambda value, one, context: float(value) <= float(one),
    "NumericGreaterThan": lambda value, one, context: float(value) > float(one),
    "NumericGreaterThanEquals": lambda value, one, context: float(value) >= float(one),
    "Bool": lambda value, one, context: value.lower() == one.lower(),
    "ArnEquals": _arn_like,
    "ArnLike": _arn_like,
}


def _filled(text: str, context: Mapping) -> str:
    """A pattern's text with the values of its policy variables."""
    return VARIABLE.sub(lambda found: _value(found[1], context), text)


def _like(value: str, pattern: str, context: Mapping, fold: bool = False) -> bool:
    """* and ? in the pattern; not in what its variables hold."""
    parts = []
    for number, part in enumerate(VARIABLE.split(pattern)):
        if number % 2:
            parts.append(re.escape(_value(part, context)))
        else:
            parts.append(re.escape(part).replace(r"\*", ".*").replace(r"\?", "."))
    return bool(re.fullmatch("".join(parts), value, re.DOTALL | (re.IGNORECASE if fold else 0)))


def _value(name: str, context: Mapping) -> str:
    """A variable's value. One that the request lacks matches nothing, without a default."""
    if name in ("*", "?", "$"):
        return name
    key, _, default = (part.strip() for part in name.partition(","))
    held = context.get(key.lower())
    if isinstance(held, list):
        raise NotImplementedError(f"several values in the variable {name}")
    return str(held) if held is not None else (default.strip("'") if default else "\0")


def _any_like(patterns: Any, value: str, context: Mapping, fold: bool = False) -> bool:
    return any(_like(value, pattern, context, fold) for pattern in _listed(patterns))


def _listed(value: Any) -> list:
    return list(value) if isinstance(value, list | tuple) else [value]
