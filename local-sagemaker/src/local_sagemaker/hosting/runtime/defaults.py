"""What an image does where a script has no function of its own: PyTorch's and scikit-learn's.

The types are those of decoder.py and encoder.py in
https://github.com/aws/sagemaker-inference-toolkit; the functions those of
https://github.com/aws/sagemaker-pytorch-inference-toolkit, read 2026-11-21, and of
https://github.com/aws/sagemaker-scikit-learn-container, read 2026-11-22. torch is imported when a
function needs it: a script with functions of its own may do without.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from local_sagemaker.hosting.runtime.http import CSV, JSON, CannotLoad, Refused

NPY = "application/x-npy"
KNOWN = (JSON, CSV, NPY)
TEXT = (JSON, CSV)


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
    return Refused(
        415,
        f"Content type {kind} is not supported by the default functions: {', '.join(KNOWN)} are.",
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


TORCH_DEFAULTS = {
    "model_fn": torch_model,
    "input_fn": torch_input,
    "predict_fn": torch_predict,
    "output_fn": encode,
}
SKLEARN_DEFAULTS = {
    "model_fn": sklearn_model,
    "input_fn": sklearn_input,
    "predict_fn": sklearn_predict,
    "output_fn": encode,
}
