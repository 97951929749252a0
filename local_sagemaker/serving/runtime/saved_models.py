"""SavedModels behind TensorFlow Serving's REST paths, and the image's Python handlers.

    /v1/models/NAME[/versions/N]:predict    POST; GET without :predict tells the versions' states
    /invocations                            the forms of forms.py, or code/inference.py's handlers

TensorFlow runs the graph that was saved; Keras is not needed for it.
"""

from __future__ import annotations

import json
import os
import re
from functools import partial
from pathlib import Path

from local_sagemaker.serving.runtime import forms, tensors, tfs_handlers
from local_sagemaker.serving.runtime.messages import JSON, CannotLoad, Reply, Request, error

SERVABLE = re.compile(r"^/v1/models/([^/:]+)(?:/versions/(\d+))?(?::(\w+))?$")
DEFAULT_SIGNATURE = "serving_default"
NAME_VARIABLE = "SAGEMAKER_TFS_DEFAULT_MODEL_NAME"


def find(folder: Path) -> dict[str, dict[int, Path]]:
    """Name of a model -> version -> its SavedModel: <name>/<number>/saved_model.pb below `folder`.

    <number>/saved_model.pb in the folder itself is the model "model".
    """
    found: dict[str, dict[int, Path]] = {}
    for path in sorted(folder.rglob("saved_model.pb")):
        if re.fullmatch(r"[0-9]+", path.parent.name):
            name = path.parent.parent.name
            found.setdefault(name, {})[int(path.parent.name)] = path.parent
    return found


class TensorFlowServing:
    """The models of a folder. port: of the worker, told once it listens."""

    def __init__(self, folder: Path, found: dict[str, dict[int, Path]]) -> None:
        self.port = 0
        self.default = os.environ.get(NAME_VARIABLE) or next(iter(found))
        if self.default not in found:
            raise CannotLoad(f"{NAME_VARIABLE} is {self.default}; there are {sorted(found)}.")
        self.models = {
            name: {number: _Servable(path) for number, path in versions.items()}
            for name, versions in found.items()
        }
        self.handler = tfs_handlers.load(folder / "code" / "inference.py")

    def invoke(self, request: Request) -> Reply:
        """Answer an invocation. Raises Refused."""
        attributes = forms.attributes(request.attributes)
        name = attributes.get("tfs-model-name", self.default)
        version, method = attributes.get("tfs-model-version"), attributes.get("tfs-method")
        ask = partial(self._predict, name, version, method or "predict")
        if self.handler is not None:
            context = tfs_handlers.Context(
                model_name=attributes.get("tfs-model-name"),
                model_version=version,
                method=method,
                rest_uri=self._uri(name, version, method or "predict"),
                grpc_port=None,
                channel=None,
                custom_attributes=request.attributes,
                request_content_type=request.content_type or JSON,
                accept_header=request.accept or JSON,
                content_length=len(request.body),
            )
            return self.handler.answer(request, context, ask)
        answer = ask(forms.to_serving_json(request))
        body, kind = forms.accepted(request.accept, answer, JSON)
        return Reply(body.encode(), kind)

    def rest(self, method: str, path: str, request: Request) -> Reply:
        """TensorFlow Serving's own paths. Raises Refused."""
        found = SERVABLE.match(path)
        if not found:
            raise error(404, f"Malformed request: {method} {path}")
        name, version, verb = found.groups()
        if method == "GET":
            return Reply(self._status(name).encode(), JSON)
        return Reply(self._predict(name, version, verb, request.body.decode()).encode(), JSON)

    def _predict(self, name: str, version: str | None, method: str, text: str) -> str:
        if method != "predict":
            raise error(400, f"The local endpoint offers :predict, and no :{method}.")
        versions = self._versions(name)
        number = int(version) if version else max(versions)
        if number not in versions:
            raise error(404, f"Servable not found for request: Specific({name}, {number})")
        return versions[number].predict(text)

    def _status(self, name: str) -> str:
        fine = {"error_code": "OK", "error_message": ""}
        states = [
            {"version": str(number), "state": "AVAILABLE", "status": fine}
            for number in sorted(self._versions(name), reverse=True)
        ]
        return json.dumps({"model_version_status": states}, indent=1)

    def _versions(self, name: str) -> dict[int, _Servable]:
        if name not in self.models:
            raise error(404, f"Servable not found for request: Latest({name})")
        return self.models[name]

    def _uri(self, name: str, version: str | None, method: str) -> str:
        middle = f"/versions/{version}" if version else ""
        return f"http://localhost:{self.port}/v1/models/{name}{middle}:{method}"


class _Servable:
    """One version of a SavedModel."""

    def __init__(self, folder: Path) -> None:
        import tensorflow as tf  # slow, and not needed by a worker that serves something else

        self.tf = tf
        self.loaded = tf.saved_model.load(str(folder))  # held: the signatures need its variables
        self.signatures = self.loaded.signatures
        if not self.signatures:
            raise CannotLoad(f"the SavedModel {folder.name} has no signature to serve.")

    def predict(self, text: str) -> str:
        """TensorFlow Serving's request -> its answer, both JSON."""
        signature = self._signature(text)
        specs = signature.structured_input_signature[1]
        kinds = {name: _dtype(spec) for name, spec in specs.items()}
        arrays, form, _ = tensors.read(text, kinds)
        for name, values in arrays.items():
            if not specs[name].shape.is_compatible_with(values.shape):
                shapes = f"{list(values.shape)}, and {specs[name].shape} is wanted"
                raise error(400, f"Input {name!r} has the shape {shapes}.")
        try:
            given = {n: self.tf.constant(v, specs[n].dtype) for n, v in arrays.items()}
            outputs = {name: one.numpy() for name, one in signature(**given).items()}
        except (self.tf.errors.OpError, ValueError, TypeError) as problem:
            raise error(400, str(problem)) from problem
        count = len(next(iter(arrays.values()))) if form == tensors.ROW else 0
        return tensors.write(outputs, form, count)

    def _signature(self, text: str):
        name = DEFAULT_SIGNATURE
        if "signature_name" in text:
            try:
                name = json.loads(text)["signature_name"]
            except (ValueError, KeyError, TypeError):
                name = DEFAULT_SIGNATURE
        if name not in self.signatures:
            known = sorted(self.signatures)
            raise error(400, f"Serving signature name {name!r} not found; there are {known}.")
        return self.signatures[name]


def _dtype(spec):
    """The signature's numpy type; object for strings."""
    import numpy as np

    return np.dtype(spec.dtype.as_numpy_dtype)
