"""code/inference.py beside a SavedModel: `input_handler` and `output_handler`, or `handler`.

The contract is that of TensorFlow's serving image, docker/build_artifacts/sagemaker/
python_service.py of https://github.com/aws/sagemaker-tensorflow-serving-container, read 2026-11-21.
"""

from __future__ import annotations

import io
import json
import sys
import threading
import traceback
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path

from local_sagemaker.serving.runtime.code import import_file
from local_sagemaker.serving.runtime.messages import CannotLoad, Refused, Reply, Request, error

Context = namedtuple(
    "Context",
    "model_name, model_version, method, rest_uri, grpc_port, channel, custom_attributes, "
    "request_content_type, accept_header, content_length",
)


class Response:
    """What an output_handler gets: TensorFlow Serving's answer, as `requests` would show it."""

    def __init__(self, status_code: int, text: str) -> None:
        self.status_code, self.content, self.text = status_code, text.encode(), text
        self.ok, self.encoding = status_code < 400, "utf-8"
        self.headers = {"Content-Type": "application/json"}

    def json(self) -> object:
        return json.loads(self.text)


class Handlers:
    """The functions of an inference.py. Their Python runs for one request at a time."""

    def __init__(self, module) -> None:
        self.lock = threading.Lock()
        self.whole = getattr(module, "handler", None)
        self.before = getattr(module, "input_handler", None)
        self.after = getattr(module, "output_handler", None)
        if self.whole is None and (self.before is None or self.after is None):
            raise CannotLoad(
                "code/inference.py has neither a `handler` nor both an `input_handler` and an "
                "`output_handler`."
            )

    def answer(self, request: Request, context: Context, ask: Callable[[str], str]) -> Reply:
        """Answer an invocation. ask: TensorFlow Serving, JSON to JSON. Raises Refused."""
        try:
            body, kind = self._run(request, context, ask)
            return Reply(body.encode() if isinstance(body, str) else body, kind)
        except Exception as problem:
            print(traceback.format_exc(), flush=True)
            raise error(500, str(problem)) from problem

    def _run(self, request: Request, context: Context, ask) -> tuple[bytes | str, str]:
        data = io.BytesIO(request.body)
        if self.whole:
            with self.lock:
                return self.whole(data, context)
        with self.lock:
            prepared = self.before(data, context)
        text = prepared.decode() if isinstance(prepared, bytes) else prepared
        try:
            response = Response(200, ask(text))
        except Refused as refused:  # it is for the output_handler to say what that means
            response = Response(refused.status, refused.body)
        with self.lock:
            return self.after(response, context)


def load(path: Path) -> Handlers | None:
    """The handlers of an inference.py; None if there is none. Raises CannotLoad."""
    if not path.is_file():
        return None
    sys.path[:0] = [str(path.parent), str(path.parent / "lib")]
    return Handlers(import_file(path))
