"""The forms in which TensorFlow's serving image takes an invocation -> TensorFlow Serving's JSON.

The rules are those of that image's front end, odd ones included, so that what works here works
there: docker/build_artifacts/sagemaker/tensorflowServing.js of
https://github.com/aws/sagemaker-tensorflow-serving-container, read 2026-11-21.
"""

from __future__ import annotations

import re

from local_sagemaker.serving.runtime.messages import CSV, JSON, JSON_LINES, Request, error

TAKEN = (JSON, JSON_LINES, "application/jsons")
SERVING_JSON = re.compile(r'"(instances|inputs|examples)"\s*:')
LINES_OF_JSON = re.compile(r"[}\]]\s*[\[{]")
ROWS = re.compile(r"^\s*\[\s*\[")
NUMBERS_OR_QUOTES = re.compile(r'^\s*("|[\d.Ee+\-]+.*)')
ATTRIBUTE = re.compile(r"(tfs-[a-z\-]+)=([^,=]+)")


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


def accepted(accept: str | None, body: str, otherwise: str) -> tuple[str, str]:
    """The body as the client accepts it, and its content type.

    JSON that is asked for by name comes on one line; else it has TensorFlow Serving's line ends.
    """
    kinds = (accept or "").strip().replace(" ", "").split(",")
    if JSON in kinds or JSON_LINES in kinds:
        return body.replace("\n", ""), kinds[0]
    return body, otherwise


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
    quoted = not NUMBERS_OR_QUOTES.match(text)
    rows = [_csv_row(line.strip(), quoted) for line in text.strip().splitlines() if line.strip()]
    return f'{{"instances":[{",".join(rows)}]}}'


def _csv_row(line: str, quoted: bool) -> str:
    several = "," in line
    if quoted:
        line = '"' + line.replace('"', '\\"').replace(",", '","') + '"'
    return f"[{line}]" if several else line
