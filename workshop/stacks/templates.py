"""The templates in cloudformation/: their text, and what they take."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import yaml

from workshop.paths import CLOUDFORMATION
from workshop.stacks.errors import StackError


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # libyaml's, where there is one
    """YAML with CloudFormation's short forms (!Ref, !Sub ...), whose arguments are kept as text."""


_Loader.add_multi_constructor("!", lambda loader, tag, node: f"!{tag} {node.value}")


def body(name: str) -> str:
    """The text of a stack's template."""
    return (CLOUDFORMATION / f"{name}.yaml").read_text(encoding="utf-8")


def parameters(name: str) -> dict[str, dict[str, Any]]:
    """The parameters that a stack's template declares."""
    return _parsed(body(name)).get("Parameters", {})


def resources(name: str) -> dict[str, dict[str, Any]]:
    """The resources of a stack's template, by their logical ids."""
    return _parsed(body(name))["Resources"]


def check(names: Iterable[str], given: Mapping[str, str]) -> None:
    """Raise StackError unless each given parameter is one of these stacks', with a good value."""
    known = {key: one for name in names for key, one in parameters(name).items() if key != "Seat"}
    for key, value in given.items():
        if key not in known:
            offer = ", ".join(known) or "none"
            raise StackError(
                f"{', '.join(names)}: no parameter {key!r}. The parameters that can be given: "
                f"{offer}."
            )
        if wrong := _wrong(known[key], value):
            raise StackError(f"{key} is {value!r}; {wrong}")


def _wrong(declared: Mapping[str, Any], value: str) -> str:
    """What is wrong with a parameter's value; empty if nothing."""
    allowed = [str(one) for one in declared.get("AllowedValues", [])]
    if allowed and value not in allowed:
        return f"it must be one of: {', '.join(allowed)}."
    if declared["Type"] == "Number":
        low, high = declared.get("MinValue"), declared.get("MaxValue")
        if not re.fullmatch(r"\d+", value) or not low <= int(value) <= high:
            return f"it must be a whole number from {low} to {high}."
    pattern = declared.get("AllowedPattern", "")
    if pattern and not re.fullmatch(pattern, value):
        return declared.get("ConstraintDescription", f"it must match {pattern}")
    return ""


@cache
def _parsed(text: str) -> dict[str, Any]:
    return yaml.load(text, Loader=_Loader)
