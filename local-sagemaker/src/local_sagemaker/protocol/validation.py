"""Checks a request against botocore's own model of the service.

botocore's client-side validator checks types, required members and minima. A service also
checks maxima, patterns and enumerations; all of that stands in the same model, and is
checked here, with AWS's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session
from botocore.model import ListShape, MapShape, OperationModel, ServiceModel, Shape, StructureShape

from local_sagemaker.protocol.errors import AwsError, validation

SHOWN = 1024  # characters of a wrong value that its message repeats
JSON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "long": int,
    "float": (int, float),
    "double": (int, float),
    "boolean": bool,
    "timestamp": (int, float),
    "list": list,
    "map": dict,
    "structure": dict,
}


@cache
def _model() -> ServiceModel:
    return botocore.session.get_session().get_service_model("sagemaker")


def exists(name: str) -> bool:
    """Whether SageMaker has an operation of this name."""
    return name in _model().operation_names


@cache
def operation(name: str) -> OperationModel:
    """botocore's model of a SageMaker operation."""
    return _model().operation_model(name)


def check(name: str, body: object) -> dict:
    """Return `body`, a request of operation `name`, if AWS would take its form.

    A member that is null counts as absent, and is left out.

    Raises AwsError: SerializationException for a wrong JSON type, else
    ValidationException with one message for each constraint that is not met.
    """
    shape = operation(name).input_shape
    messages = list(_violations(shape, body, ""))
    if messages:
        count = f"{len(messages)} validation error{'s' if len(messages) > 1 else ''} detected: "
        raise validation(count + "; ".join(messages))
    return _without_nulls(body)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(v) for key, v in value.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _violations(shape: Shape, value: Any, path: str) -> Iterator[str]:
    kind = JSON_TYPES.get(shape.type_name)
    wrong_bool = isinstance(value, bool) and shape.type_name != "boolean"
    if kind and (not isinstance(value, kind) or wrong_bool):
        where = f" at '{path}'" if path else ""
        raise AwsError(
            "SerializationException",
            f"{type(value).__name__} can not be converted to {shape.type_name}{where}",
        )
    # An integer has 32 bits and a long 64: https://smithy.io/2.0/spec/simple-types.html.
    bits = {"integer": 32, "long": 64}.get(shape.type_name)
    if bits and not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise AwsError(
            "SerializationException",
            f"A number at '{path}' does not fit into the {bits} bits of its type.",
        )
    yield from _constraints(shape, value, path)
    if isinstance(shape, StructureShape):
        for name in shape.required_members:
            if value.get(name) is None:
                yield _message("null", _join(path, name), "not be null")
        for name, member in shape.members.items():
            if value.get(name) is not None:
                yield from _violations(member, value[name], _join(path, name))
    elif isinstance(shape, ListShape):
        for number, member in enumerate(value, 1):
            yield from _violations(shape.member, member, f"{path}.{number}.member")
    elif isinstance(shape, MapShape):
        for key, member in value.items():
            yield from _violations(shape.key, key, f"{path}.{key}.key")
            yield from _violations(shape.value, member, f"{path}.{key}.member")


def _constraints(shape: Shape, value: Any, path: str) -> Iterator[str]:
    """What of the shape's minimum, maximum, pattern and enumeration a value does not meet."""
    number = isinstance(value, int | float)
    size, measure = (value, "value") if number else (len(value), "length")
    shown = f"[{size} members]" if isinstance(value, list | dict) else value
    low, high = (shape.metadata.get(bound, size) for bound in ("min", "max"))
    if size < low:
        yield _message(shown, path, f"have {measure} greater than or equal to {low}")
    if size > high:
        yield _message(shown, path, f"have {measure} less than or equal to {high}")
    pattern = shape.metadata.get("pattern")
    if pattern and size <= high and not _matches(pattern, value):
        yield _message(value, path, f"satisfy regular expression pattern: {pattern}")
    if shape.type_name == "string" and shape.enum and value not in shape.enum:
        yield _message(value, path, f"satisfy enum value set: [{', '.join(shape.enum)}]")


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.fullmatch(pattern.removeprefix("^").removesuffix("$"), value) is not None
    except re.error:  # a construct of Java's that Python lacks: let it pass
        return True


def _message(value: object, path: str, must: str) -> str:
    shown = value if value == "null" else f"'{str(value)[:SHOWN]}'"
    return f"Value {shown} at '{path}' failed to satisfy constraint: Member must {must}"


def _join(path: str, name: str) -> str:
    name = name[0].lower() + name[1:]
    return f"{path}.{name}" if path else name
