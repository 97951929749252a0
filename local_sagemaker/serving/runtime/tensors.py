"""TensorFlow Serving's JSON <-> arrays. https://www.tensorflow.org/tfx/serving/api_rest"""

from __future__ import annotations

import base64
import json

import numpy as np

from local_sagemaker.serving.runtime.messages import Refused, error

ROW, COLUMN = "instances", "inputs"


def read(text: str, inputs: dict[str, np.dtype]) -> tuple[dict[str, np.ndarray], str, str | None]:
    """(arrays by input's name, the form: "instances" or "inputs", signature_name or None).

    inputs: the signature's, name -> dtype. Raises Refused (400).
    """
    try:
        asked = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise error(400, f"JSON Parse error: {problem}") from problem
    if not isinstance(asked, dict) or (ROW in asked) == (COLUMN in asked):
        raise error(400, "JSON must have one of 'instances' (a list) or 'inputs'.")
    form = ROW if ROW in asked else COLUMN
    values = _rows(asked[ROW], inputs) if form == ROW else _columns(asked[COLUMN], inputs)
    arrays = {name: array(name, values[name], inputs[name]) for name in inputs}
    return arrays, form, asked.get("signature_name")


def _rows(instances: object, inputs: dict) -> dict[str, list]:
    """One value for each input of each instance -> one list for each input."""
    if not isinstance(instances, list) or not instances:
        raise error(400, "'instances' must be a list of at least one instance.")
    if all(isinstance(one, dict) and set(one) == set(inputs) for one in instances):
        return {name: [one[name] for one in instances] for name in inputs}
    if any(isinstance(one, dict) and not _encoded(one) for one in instances):
        found = sorted({key for one in instances if isinstance(one, dict) for key in one})
        raise error(
            400, f"Failed to process the instances: their inputs are {found}, {_are(inputs)}"
        )
    return {_only(inputs): instances}


def _columns(given: object, inputs: dict) -> dict:
    if isinstance(given, dict) and not _encoded(given):
        if set(given) != set(inputs):
            raise error(
                400, f"Failed to process the inputs: they are {sorted(given)}, {_are(inputs)}"
            )
        return given
    return {_only(inputs): given}


def _only(inputs: dict) -> str:
    if len(inputs) != 1:
        raise error(400, f"A value without a name, and {_are(inputs)}")
    return next(iter(inputs))


def _are(inputs: dict) -> str:
    return f"and the signature's are {sorted(inputs)}."


def _encoded(value: object) -> bool:
    return isinstance(value, dict) and set(value) == {"b64"}


def array(name: str, value: object, dtype: np.dtype) -> np.ndarray:
    """An array of a nested list. Raises Refused where the lists are ragged or the type differs."""
    try:
        if dtype.hasobject:
            return np.array(_decoded(value), dtype=object)
        plain = np.array(value)
        if plain.dtype.hasobject or plain.dtype.kind in "US":
            raise ValueError("its values are not numbers, or its lists differ in length")
        if dtype.kind in "iu" and plain.dtype.kind == "f":
            raise ValueError(f"it holds fractions, and {dtype} is wanted")
        if dtype.kind == "b" and plain.dtype.kind != "b":
            raise ValueError("it is to hold true and false")
        return plain.astype(dtype)
    except (ValueError, TypeError, OverflowError) as problem:
        raise error(400, f"Failed to process element {name!r}: {problem}.") from problem


def _decoded(value: object) -> object:
    if isinstance(value, list):
        return [_decoded(one) for one in value]
    if _encoded(value):
        return base64.b64decode(value["b64"])
    if isinstance(value, str):
        return value.encode()
    raise ValueError(f"{value!r} is no string")


def write(outputs: dict[str, np.ndarray], form: str, instances: int) -> str:
    """TensorFlow Serving's answer: {"predictions": [...]} for rows, {"outputs": ...} for columns.

    Numbers are written so that they are read as the very same float32 again.
    """
    if form == COLUMN:
        values = {name: _plain(one) for name, one in outputs.items()}
        only = next(iter(values.values())) if len(values) == 1 else values
        return '{\n    "outputs": ' + json.dumps(only) + "\n}"
    for name, one in outputs.items():
        if one.ndim == 0 or len(one) != instances:
            raise Refused(
                400,
                json.dumps(
                    {
                        "error": f"Output {name!r} has no value for each of the {instances} "
                        "instances: ask with 'inputs'."
                    }
                ),
            )
    columns = {name: _plain(one) for name, one in outputs.items()}
    if len(columns) == 1:
        rows = next(iter(columns.values()))
    else:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    lines = ", ".join(json.dumps(row) for row in rows)
    return '{\n    "predictions": [' + lines + "\n    ]\n}"


def _plain(values: np.ndarray) -> object:
    if values.dtype.hasobject:
        return _texts(values.tolist())
    return values.tolist()


def _texts(value: object) -> object:
    """Bytes as text; where they are none, in TensorFlow Serving's base64 form."""
    if isinstance(value, list):
        return [_texts(one) for one in value]
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode()}
