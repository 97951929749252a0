"""What the PyTorch image does where a script has no function of its own: TorchScript, arrays.

torch is imported when a function needs it: a script with functions of its own may do without.
"""

from __future__ import annotations

from pathlib import Path

from local_sagemaker.serving.runtime import codec
from local_sagemaker.serving.runtime.messages import CannotLoad


def weights(folder: Path) -> list[Path]:
    """The files that `model` may load."""
    return sorted(path for path in folder.iterdir() if path.suffix in (".pt", ".pth"))


def model(model_dir):
    """Load TorchScript from model.pt, or from the only .pt or .pth. Raises CannotLoad."""
    import torch

    path = Path(model_dir) / "model.pt"
    if not path.is_file():
        found = weights(Path(model_dir))
        if len(found) != 1:
            names = ", ".join(one.name for one in found) or "none"
            raise CannotLoad(f"one .pt or .pth is wanted where no model_fn loads it: {names}.")
        path = found[0]
    try:
        return torch.jit.load(str(path), map_location="cpu").eval()
    except RuntimeError as error:
        raise CannotLoad(
            f"{path.name} is not TorchScript. A state_dict needs code/inference.py with a model_fn "
            "that builds the model."
        ) from error


def input(data, content_type):
    """JSON, CSV or NPY -> a tensor; float32 from text."""
    import torch

    array = codec.decode(data, content_type)
    if content_type in codec.TEXT:
        return torch.tensor(array, dtype=torch.float32)
    return torch.from_numpy(array)


def predict(data, model):
    import torch

    with torch.no_grad():
        return model.eval()(data)


def output(prediction, accept):
    """A tensor, an array or lists -> JSON, CSV or NPY."""
    if hasattr(prediction, "detach"):
        prediction = prediction.detach().cpu().numpy()
    return codec.encode(prediction, accept)
