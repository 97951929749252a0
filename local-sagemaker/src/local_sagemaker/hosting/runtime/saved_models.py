"""A SavedModel behind TensorFlow Serving's REST form, and the image's Python handlers.

An invocation has one of the forms of forms.py, or code/inference.py has handlers for it.
TensorFlow runs the graph that was saved; Keras is not needed. The handlers' contract is that
of docker/build_artifacts/sagemaker/python_service.py of
https://github.com/aws/sagemaker-tensorflow-serving-container, read 2026-11-21.
"""

from __future__ import annotations

import io
import re
import sys
import threading
import traceback
from collections import namedtuple
from pathlib import Path
from typing import Any

import requests

from local_sagemaker.hosting.runtime import forms
from local_sagemaker.hosting.runtime.forms import error
from local_sagemaker.hosting.runtime.http import JSON, CannotLoad, Refused, Request, Response
from local_sagemaker.hosting.runtime.toolkit import import_file

DEFAULT_SIGNATURE = "serving_default"
Context = namedtuple(
    "Context",
    "model_name, model_version, method, rest_uri, grpc_port, channel, custom_attributes, "
    "request_content_type, accept_header, content_length",
)


def find(folder: Path) -> Path | None:
    """The SavedModel below `folder`, <number>/saved_model.pb; of several numbers the highest.

    Raises CannotLoad where there are several models: <name>/<number>/saved_model.pb.
    """
    folders = [
        path.parent
        for path in folder.rglob("saved_model.pb")
        if re.fullmatch(r"[0-9]+", path.parent.name)
    ]
    if len({path.parent for path in folders}) > 1:
        names = ", ".join(sorted({path.parent.name for path in folders}))
        raise CannotLoad(f"it holds several SavedModels ({names}); the emulator serves one.")
    return max(folders, key=lambda path: int(path.name), default=None)


class TensorFlowServing:
    """A SavedModel, and the script's handlers."""

    def __init__(self, saved: Path, code: Path) -> None:
        import tensorflow as tf  # slow, and not needed by a worker that serves something else

        self.tf = tf
        self.name, self.version = saved.parent.name, saved.name
        self.loaded = tf.saved_model.load(str(saved))  # held: the signatures need its variables
        self.signatures = self.loaded.signatures
        if not self.signatures:
            raise CannotLoad(f"the SavedModel {saved.name} has no signature to serve.")
        self.handlers: Handlers | None = None
        if (script := code / "inference.py").is_file():
            sys.path[:0] = [str(code), str(code / "lib")]
            self.handlers = Handlers(import_file(script))

    def invoke(self, request: Request) -> Response:
        """Answer an invocation. Raises Refused."""
        if self.handlers is not None:
            context = Context(
                model_name=self.name,
                model_version=self.version,
                method="predict",
                rest_uri=None,
                grpc_port=None,
                channel=None,
                custom_attributes=request.attributes,
                request_content_type=request.content_type or JSON,
                accept_header=request.accept or JSON,
                content_length=len(request.body),
            )
            return self.handlers.answer(request.body, context, self.predict)
        text = self.predict(forms.to_serving_json(request))
        body, kind = forms.accepted(request.accept, text)
        return Response(body, content_type=kind)

    def predict(self, text: str) -> str:
        """TensorFlow Serving's request -> its answer, both JSON. Raises Refused."""
        body = forms.parse(text)
        name = body.get("signature_name", DEFAULT_SIGNATURE)
        if name not in self.signatures:
            known = sorted(self.signatures)
            raise error(400, f"Serving signature name {name!r} not found; there are {known}.")
        signature = self.signatures[name]
        specs = signature.structured_input_signature[1]
        values = forms.rows(body["instances"], specs)
        try:
            tensors = {n: self.tf.constant(values[n], spec.dtype) for n, spec in specs.items()}
        except (ValueError, TypeError) as problem:
            raise error(400, f"Failed to process the instances: {problem}") from problem
        for name, tensor in tensors.items():
            if not specs[name].shape.is_compatible_with(tensor.shape):
                shapes = f"{list(tensor.shape)}, and {specs[name].shape} is wanted"
                raise error(400, f"Input {name!r} has the shape {shapes}.")
        try:
            outputs = {name: tensor.numpy() for name, tensor in signature(**tensors).items()}
        except (self.tf.errors.OpError, ValueError, TypeError) as problem:
            raise error(400, str(problem)) from problem
        return forms.answer(outputs, len(body["instances"]))


def serving_answer(status: int, text: str) -> requests.Response:
    """TensorFlow Serving's answer, as an output_handler gets it."""
    answer = requests.Response()
    answer.status_code, answer._content, answer.encoding = status, text.encode(), "utf-8"
    answer.headers["Content-Type"] = JSON
    return answer


class Handlers:
    """`input_handler` and `output_handler` of code/inference.py.

    Their Python runs for one request at a time.
    """

    def __init__(self, module) -> None:
        self.lock = threading.Lock()
        self.before: Any = getattr(module, "input_handler", None)
        self.after: Any = getattr(module, "output_handler", None)
        if not (self.before and self.after):
            raise CannotLoad(
                "code/inference.py lacks an `input_handler` or an `output_handler`. (A `handler` "
                "that asks TensorFlow Serving itself works on AWS only.)"
            )

    def answer(self, body: bytes, context: Context, predict) -> Response:
        """Answer an invocation. predict: TensorFlow Serving, JSON to JSON. Raises Refused."""
        try:
            with self.lock:
                prepared = self.before(io.BytesIO(body), context)
            text = prepared.decode() if isinstance(prepared, bytes) else prepared
            try:
                answer = serving_answer(200, predict(text))
            except Refused as refused:  # it is for the output_handler to say what that means
                answer = serving_answer(refused.status, refused.body)
            with self.lock:
                body, kind = self.after(answer, context)
            return Response(body, content_type=kind)
        except Exception as problem:
            print(traceback.format_exc(), flush=True)
            raise error(500, str(problem)) from problem
