"""What comes into a worker and goes out, and why it may fail."""

from __future__ import annotations

import dataclasses
import json

ATTRIBUTES = "X-Amzn-SageMaker-Custom-Attributes"
JSON = "application/json"
JSON_LINES = "application/jsonlines"
CSV = "text/csv"
NPY = "application/x-npy"


class CannotLoad(Exception):
    """Why a model cannot be served, and what is wanted."""


class Refused(Exception):
    """A request that is answered with an HTTP status other than 200, and a body."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(body)
        self.status, self.body = status, body


@dataclasses.dataclass
class Request:
    """An invocation. body: its bytes. content_type, accept, attributes: headers, or None."""

    body: bytes
    content_type: str | None = None
    accept: str | None = None
    attributes: str | None = None


@dataclasses.dataclass
class Reply:
    """The answer to an invocation."""

    body: bytes
    content_type: str
    status: int = 200


def error(status: int, message: str) -> Refused:
    """A refusal in TensorFlow Serving's form: {"error": message}."""
    return Refused(status, json.dumps({"error": message}))
