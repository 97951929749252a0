"""The forms of requests to TensorFlow's serving image, and of its answers.

    an invocation -> `to_serving_json` -> TensorFlow Serving's JSON -> `parse`, `rows` -> lists
    numpy -> `answer` -> TensorFlow Serving's JSON -> `accepted` -> what the client gets

The rules of the first step are those of the image's front end, odd ones included, so that what
works here works there: docker/build_artifacts/sagemaker/tensorflowServing.js of
https://github.com/aws/sagemaker-tensorflow-serving-container, read 2026-11-21. The JSON is that of
https://www.tensorflow.org/tfx/serving/api_rest, for numbers: strings are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection

import numpy as np

from local_sagemaker.hosting.runtime.http import CSV, JSON, Refused, Request

JSON_LINES = "application/jsonlines"
TAKEN = (JSON, JSON_LINES, "application/jsons")
SERVING_JSON = re.compile(r'"(instances|inputs|examples)"\s*:')
LINES_OF_JSON = re.compile(r"[}\]]\s*[\[{]")
ROWS = re.compile(r"^\s*\[\s*\[")


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
    """A request: `instances`, perhaps `signature_name`. Raises Refused (400)."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise error(400, f"JSON Parse error: {problem}") from problem
    if not isinstance(body, dict) or "instances" not in body:
        raise error(400, "JSON must have 'instances', a list. (The emulator takes no 'inputs'.)")
    return body


def rows(instances: object, inputs: Collection[str]) -> dict[str, list]:
    """A value for each input of each instance -> a list for each input. Raises Refused (400)."""
    if not isinstance(instances, list) or not instances:
        raise error(400, "'instances' must be a list of at least one instance.")
    if all(isinstance(instance, dict) and set(instance) == set(inputs) for instance in instances):
        return {name: [instance[name] for instance in instances] for name in inputs}
    if any(isinstance(instance, dict) for instance in instances):
        given = sorted({key for row in instances if isinstance(row, dict) for key in row})
        raise error(
            400, f"Failed to process the instances: their inputs are {given}, {_are(inputs)}"
        )
    if len(inputs) != 1:
        raise error(400, f"A value without a name, {_are(inputs)}")
    return {next(iter(inputs)): instances}


def _are(inputs: Collection[str]) -> str:
    return f"and the signature's are {sorted(inputs)}."


def answer(outputs: dict[str, np.ndarray], instances: int) -> str:
    """{"predictions": [...]}, a row for each of so many instances.

    Numbers are written so that they are read as the very same float32 again.
    """
    if strings := [name for name, output in outputs.items() if output.dtype.hasobject]:
        raise error(400, f"The outputs {strings} hold strings; the emulator gives numbers.")
    columns = {name: output.tolist() for name, output in outputs.items()}
    (only,) = columns.values() if len(columns) == 1 else (None,)
    for name, output in outputs.items():
        if output.ndim == 0 or len(output) != instances:
            raise error(400, f"Output {name!r} has no value for each of {instances} instances.")
    named = zip(*columns.values(), strict=True)
    rows = only or [dict(zip(columns, row, strict=True)) for row in named]
    lines = ", ".join(json.dumps(row) for row in rows)
    return '{\n    "predictions": [' + lines + "\n    ]\n}"
