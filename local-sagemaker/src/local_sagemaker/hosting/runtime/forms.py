"""The forms of requests to TensorFlow's serving image, and of its answers.

    an invocation -> `to_serving_json` -> TensorFlow Serving's JSON -> `parse`, `arrays` -> numpy
    numpy -> `answer` -> TensorFlow Serving's JSON -> `accepted` -> what the client gets

The rules of the first step are those of the image's front end, odd ones included, so that what
works here works there: docker/build_artifacts/sagemaker/tensorflowServing.js of
https://github.com/aws/sagemaker-tensorflow-serving-container, read 2026-11-21. The JSON is that of
https://www.tensorflow.org/tfx/serving/api_rest, for numbers: strings are refused.
"""

from __future__ import annotations

import json
import re

import numpy as np

from local_sagemaker.hosting.runtime.http import CSV, JSON, Refused, Request

JSON_LINES = "application/jsonlines"
TAKEN = (JSON, JSON_LINES, "application/jsons")
SERVING_JSON = re.compile(r'"(instances|inputs|examples)"\s*:')
LINES_OF_JSON = re.compile(r"[}\]]\s*[\[{]")
ROWS = re.compile(r"^\s*\[\s*\[")
ATTRIBUTE = re.compile(r"(tfs-[a-z\-]+)=([^,=]+)")


def error(status: int, message: str) -> Refused:
    """A refusal in TensorFlow Serving's form: {"error": message}."""
    return Refused(status, json.dumps({"error": message}))


def to_serving_json(request: Request) -> str:
    """The body for TensorFlow Serving. Raises Refused: 415 for another content type."""
    text = request.body.decode("utf-8", "replace")
    if request.content_type in TAKEN:
        return _json(text)
    if request.content_type == CSV:
        return _csv(text)
    raise error(415, f"Unsupported Media Type: {request.content_type or 'Unknown'}")


def attributes(text: str | None) -> dict[str, str]:
    """tfs-model-name, tfs-model-version and tfs-method of the custom attributes."""
    return dict(ATTRIBUTE.findall(text or ""))


def accepted(accept: str | None, body: str) -> tuple[str, str]:
    """The body as the client accepts it, and its content type.

    JSON that is asked for by name comes on one line; else it has TensorFlow Serving's line ends.
    """
    kinds = (accept or "").strip().replace(" ", "").split(",")
    if JSON in kinds or JSON_LINES in kinds:
        return body.replace("\n", ""), kinds[0]
    return body, JSON


def _json(text: str) -> str:
    if SERVING_JSON.search(text):
        return text
    if LINES_OF_JSON.search(text):
        return _instances([line.strip() for line in text.strip().splitlines()])
    # A list of lists is taken for a list of instances; anything else for one instance.
    return f'{{"instances":{text if ROWS.match(text) else f"[{text}]"}}}'


def _instances(lines: list[str]) -> str:
    if len(lines) == 1:
        return f'{{"instances":{lines[0]}}}'
    return f'{{"instances":[{",".join(line for line in lines if line)}]}}'


def _csv(text: str) -> str:
    rows = [line.strip() for line in text.splitlines() if line.strip()]
    return f'{{"instances":[{",".join(f"[{row}]" if "," in row else row for row in rows)}]}}'


def parse(text: str) -> dict:
    """A request: `instances` (rows) or `inputs` (columns), perhaps `signature_name`. Raises
    Refused (400)."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise error(400, f"JSON Parse error: {problem}") from problem
    if not isinstance(body, dict) or ("instances" in body) == ("inputs" in body):
        raise error(400, "JSON must have one of 'instances' (a list) or 'inputs'.")
    return body


def arrays(body: dict, inputs: dict[str, np.dtype]) -> dict[str, np.ndarray]:
    """The arrays of a request. inputs: the signature's, name -> dtype. Raises Refused (400)."""
    rows = "instances" in body
    values = _rows(body["instances"], inputs) if rows else _columns(body["inputs"], inputs)
    return {name: array(name, values[name], inputs[name]) for name in inputs}


def _rows(instances: object, inputs: dict) -> dict[str, list]:
    """One value for each input of each instance -> one list for each input."""
    if not isinstance(instances, list) or not instances:
        raise error(400, "'instances' must be a list of at least one instance.")
    if all(isinstance(instance, dict) and set(instance) == set(inputs) for instance in instances):
        return {name: [instance[name] for instance in instances] for name in inputs}
    if any(isinstance(instance, dict) for instance in instances):
        given = sorted({key for row in instances if isinstance(row, dict) for key in row})
        raise error(
            400, f"Failed to process the instances: their inputs are {given}, {_are(inputs)}"
        )
    return {_only(inputs): instances}


def _columns(given: object, inputs: dict) -> dict:
    if isinstance(given, dict):
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


def array(name: str, value: object, dtype: np.dtype) -> np.ndarray:
    """An array of a nested list. Raises Refused where the lists are ragged or the type differs."""
    try:
        if dtype.hasobject:
            raise ValueError("it is to hold strings, and the emulator takes numbers")
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


def answer(outputs: dict[str, np.ndarray], instances: int | None) -> str:
    """{"predictions": [...]} for so many rows, or {"outputs": ...} for columns (None).

    Numbers are written so that they are read as the very same float32 again.
    """
    if strings := [name for name, output in outputs.items() if output.dtype.hasobject]:
        raise error(400, f"The outputs {strings} hold strings; the emulator gives numbers.")
    columns = {name: output.tolist() for name, output in outputs.items()}
    (only,) = columns.values() if len(columns) == 1 else (None,)
    if instances is None:
        return '{\n    "outputs": ' + json.dumps(columns if only is None else only) + "\n}"
    for name, output in outputs.items():
        if output.ndim == 0 or len(output) != instances:
            raise error(
                400,
                f"Output {name!r} has no value for each of the {instances} instances: ask with "
                "'inputs'.",
            )
    named = zip(*columns.values(), strict=True)
    rows = only or [dict(zip(columns, row, strict=True)) for row in named]
    lines = ", ".join(json.dumps(row) for row in rows)
    return '{\n    "predictions": [' + lines + "\n    ]\n}"
