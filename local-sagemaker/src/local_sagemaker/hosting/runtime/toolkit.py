"""model_fn, input_fn, predict_fn, output_fn, transform_fn: the PyTorch image's contract.

The contract is src/sagemaker_inference/transformer.py of
https://github.com/aws/sagemaker-inference-toolkit, and the types are those of its decoder.py and
encoder.py. What an image does where a script has no function of its own is in
https://github.com/aws/sagemaker-pytorch-inference-toolkit (all read 2026-11-21) and in
https://github.com/aws/sagemaker-scikit-learn-container (read 2026-11-22). torch is imported when a
function needs it: a script with functions of its own may do without.
"""

from __future__ import annotations

import importlib.util
import inspect
import io
import json
import os
import sys
import threading
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from local_sagemaker.hosting.runtime.http import CSV, JSON, CannotLoad, Refused, Request, Response

NAMES = ("model_fn", "input_fn", "predict_fn", "output_fn", "transform_fn")
ANY = "*/*"
SCIKIT_LEARN = "scikit-learn"  # in the name of its image
NPY = "application/x-npy"
TEXT = (JSON, CSV)


class Toolkit:
    """The functions of the script that came with a model, and defaults for those it lacks.

    They run for one request at a time, as in each of the image's own worker processes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.lock = folder, threading.Lock()
        self.context = SimpleNamespace(system_properties={"model_dir": str(folder)})
        scikit = SCIKIT_LEARN in os.environ.get("LOCAL_SAGEMAKER_IMAGE", "")
        defaults = SKLEARN_DEFAULTS if scikit else TORCH_DEFAULTS
        script = _functions(_script(folder / "code"))
        self.functions: dict[str, Any] = {**defaults, "output_fn": encode, **script}
        load = self.functions["model_fn"]
        try:
            self.model = self._call(load, str(folder))
        except CannotLoad:
            raise
        except Exception as error:
            print(traceback.format_exc(), flush=True)
            raise CannotLoad(f"{load.__name__} failed: {type(error).__name__}: {error}") from error

    def invoke(self, request: Request) -> Response:
        """Answer an invocation. Raises Refused."""
        accept = request.accept
        if not accept or accept == ANY:
            accept = os.environ.get("SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT", JSON)
        kind = request.content_type
        try:
            data = request.body.decode() if kind in TEXT else request.body
            with self.lock:
                result = self._transform(data, kind, accept)
            content, kind = result if isinstance(result, tuple) else (result, accept)
            if not isinstance(content, str | bytes | bytearray):
                raise TypeError(
                    f"The answer is a {type(content).__name__}; it must be str or bytes."
                )
            body = content if isinstance(content, str) else bytes(content)
            return Response(body, content_type=kind)
        except Refused:
            raise
        except Exception as error:
            trace = traceback.format_exc()
            print(trace, flush=True)
            raise Refused(500, f"{error}\n{trace}") from error

    def _transform(self, data: bytes | str, kind: str | None, accept: str) -> object:
        functions = self.functions
        if "transform_fn" in functions:
            return self._call(functions["transform_fn"], self.model, data, kind, accept)
        read = self._call(functions["input_fn"], data, kind)
        prediction = self._call(functions["predict_fn"], read, self.model)
        return self._call(functions["output_fn"], prediction, accept)

    def _call(self, function, *arguments):
        """Call with the context too, where the function takes one argument more."""
        taken = len(inspect.signature(function).parameters)
        if taken == len(arguments) + 1:
            arguments = (*arguments, self.context)
        elif taken != len(arguments):
            name = function.__name__
            raise TypeError(f"{name} takes {taken} arguments but {len(arguments)} were given.")
        return function(*arguments)


def _script(code: Path) -> Path | None:
    """The script that SAGEMAKER_PROGRAM names, or inference.py; None where there is none.

    ModelBuilder of the SDK 3 names one for a ModelTrainer's model and does not pack it: AWS's image
    then serves the weights by its defaults.
    """
    name = os.environ.get("SAGEMAKER_PROGRAM") or "inference.py"
    path = code / (name if name.endswith(".py") else f"{name}.py")
    if path.is_file():
        return path
    if "SAGEMAKER_PROGRAM" in os.environ and not weights(code.parent):
        raise CannotLoad(f"code/{path.name} is not in the model's archive.")
    return None


def _functions(script: Path | None) -> dict:
    if script is None:
        return {}
    sys.path.insert(0, str(script.parent))
    module = import_file(script)
    functions = {name: getattr(module, name) for name in NAMES if hasattr(module, name)}
    if "transform_fn" in functions and functions.keys() & {"input_fn", "predict_fn", "output_fn"}:
        raise CannotLoad(
            f"code/{script.name} has transform_fn beside input_fn, predict_fn or output_fn: "
            "it takes their place."
        )
    return functions


def import_file(path: Path):
    """The module of a file that came with a model. Raises CannotLoad with the traceback's last
    line."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader  # it ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        print(traceback.format_exc(), flush=True)
        raise CannotLoad(
            f"code/{path.name} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return module


def decode(data: Any, kind: str | None) -> np.ndarray:
    """An array of a request's body. Raises Refused (415), or ValueError for what is not `kind`."""
    if kind == JSON:
        return np.array(json.loads(data))
    if kind == CSV:
        return np.genfromtxt(io.StringIO(data), delimiter=",")
    if kind == NPY:
        return np.load(io.BytesIO(data), allow_pickle=False)
    raise _unsupported(kind)


def encode(values, accept: str) -> bytes:
    """A tensor, an array or nested lists, in the first type of `accept` that is known."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    for content_type in (part.strip() for part in accept.split(",")):
        if content_type == JSON:
            return json.dumps(values, default=lambda array: array.tolist()).encode()
        if content_type == CSV:
            text = io.StringIO()
            np.savetxt(text, np.asarray(values), delimiter=",", fmt="%s")
            return text.getvalue().encode()
        if content_type == NPY:
            raw = io.BytesIO()
            np.save(raw, np.asarray(values), allow_pickle=False)
            return raw.getvalue()
    raise _unsupported(accept)


def _unsupported(kind: str | None) -> Refused:
    known = ", ".join((*TEXT, NPY))
    return Refused(
        415, f"Content type {kind} is not supported by the default functions: {known} are."
    )


def weights(folder: Path) -> list[Path]:
    """The files that `torch_model` may load."""
    return sorted(path for path in folder.iterdir() if path.suffix in (".pt", ".pth"))


def torch_model(model_dir):
    """Load TorchScript from model.pt, or from the only .pt or .pth. Raises CannotLoad."""
    import torch

    path = Path(model_dir) / "model.pt"
    if not path.is_file():
        paths = weights(Path(model_dir))
        if len(paths) != 1:
            names = ", ".join(path.name for path in paths) or "none"
            raise CannotLoad(f"one .pt or .pth is wanted where no model_fn loads it: {names}.")
        path = paths[0]
    try:
        return torch.jit.load(str(path), map_location="cpu").eval()
    except RuntimeError as error:
        raise CannotLoad(
            f"{path.name} is not TorchScript. A state_dict needs code/inference.py with a model_fn "
            "that builds the model."
        ) from error


def torch_input(data, content_type):
    """JSON, CSV or NPY -> a tensor; float32 from text."""
    import torch

    array = decode(data, content_type)
    if content_type in TEXT:
        return torch.tensor(array, dtype=torch.float32)
    return torch.from_numpy(array)


def torch_predict(data, model):
    import torch

    with torch.no_grad():
        return model.eval()(data)


def sklearn_model(model_dir):
    raise CannotLoad("the scikit-learn image loads no model by itself: code needs a model_fn.")


def sklearn_input(data, content_type):
    """JSON, CSV or NPY -> an array; float32 from NPY."""
    array = decode(data, content_type)
    return array if content_type in TEXT else array.astype("float32")


def sklearn_predict(data, model):
    return model.predict(data)


TORCH_DEFAULTS = {"model_fn": torch_model, "input_fn": torch_input, "predict_fn": torch_predict}
SKLEARN_DEFAULTS = {
    "model_fn": sklearn_model,
    "input_fn": sklearn_input,
    "predict_fn": sklearn_predict,
}
