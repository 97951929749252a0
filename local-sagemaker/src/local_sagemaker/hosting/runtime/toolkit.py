"""model_fn, input_fn, predict_fn, output_fn, transform_fn: the PyTorch image's contract.

The contract is src/sagemaker_inference/transformer.py of
https://github.com/aws/sagemaker-inference-toolkit, read 2026-11-21.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import threading
import traceback
from pathlib import Path
from types import SimpleNamespace

from local_sagemaker.hosting.runtime.defaults import (
    SKLEARN_DEFAULTS,
    TEXT,
    TORCH_DEFAULTS,
    weights,
)
from local_sagemaker.hosting.runtime.http import JSON, CannotLoad, Refused, Reply, Request

NAMES = ("model_fn", "input_fn", "predict_fn", "output_fn", "transform_fn")
ANY = "*/*"
SCIKIT_LEARN = "scikit-learn"  # in the name of its image


class Toolkit:
    """The functions of the script that came with a model, and defaults for those it lacks.

    They run for one request at a time, as in each of the image's own worker processes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.lock = folder, threading.Lock()
        self.context = SimpleNamespace(system_properties={"model_dir": str(folder)})
        self.functions = _functions(_script(folder / "code"))
        scikit = SCIKIT_LEARN in os.environ.get("LOCAL_SAGEMAKER_IMAGE", "")
        self.functions = (SKLEARN_DEFAULTS if scikit else TORCH_DEFAULTS) | self.functions
        load = self.functions["model_fn"]
        try:
            self.model = self._call(load, str(folder))
        except CannotLoad:
            raise
        except Exception as error:
            print(traceback.format_exc(), flush=True)
            raise CannotLoad(f"{load.__name__} failed: {type(error).__name__}: {error}") from error

    def invoke(self, request: Request) -> Reply:
        """Answer an invocation. Raises Refused."""
        accept = request.accept
        if not accept or accept == ANY:
            accept = os.environ.get("SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT", JSON)
        kind = request.content_type
        try:
            data = request.body.decode() if kind in TEXT else request.body
            with self.lock:
                result = self._transform(data, kind, accept)
            return _reply(result, accept)
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


def _reply(result: object, accept: str) -> Reply:
    body, kind = result if isinstance(result, tuple) else (result, accept)
    if isinstance(body, str):
        body = body.encode()
    if not isinstance(body, bytes | bytearray):
        raise TypeError(f"The answer is a {type(body).__name__}; it must be str or bytes.")
    return Reply(bytes(body), kind)


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
