"""A worker: load a model, then answer /ping and /invocations, as a serving container does.

    python -m local_sagemaker.hosting.runtime FD

FD: a socket that listens already, on loopback. The key that the emulator's requests show is in
$LOCAL_SAGEMAKER_KEY, the model in $SAGEMAKER_BASE_DIR/model. What is served is decided by what lies
there:

    <number>/saved_model.pb    TensorFlow Serving's REST forms; code/inference.py may hold handlers
    anything else              the functions of the PyTorch image: model_fn, predict_fn, ...
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

from local_sagemaker.hosting.runtime.http import KEY, CannotLoad, serve


def main() -> None:
    """Serve until killed. Exit 1, with a message, if the model cannot be loaded."""
    key = os.environ.pop(KEY)
    gc.disable()
    try:
        model = load(Path(os.environ["SAGEMAKER_BASE_DIR"]) / "model")
    except CannotLoad as error:
        print(f"The model cannot be loaded: {error}", flush=True)
        sys.exit(1)
    # What TensorFlow's import makes stays: searched for garbage, it stops all answers for 0.2 s.
    gc.freeze()
    gc.enable()
    serve(int(sys.argv[1]), model, key)


def load(folder: Path):
    """What answers for the model in `folder`. Raises CannotLoad, or what the model raises."""
    from local_sagemaker.hosting.runtime import saved_models, toolkit

    pytorch = "pytorch" in os.environ.get("LOCAL_SAGEMAKER_IMAGE", "")
    if not pytorch and (saved := saved_models.find(folder)):
        return saved_models.TensorFlowServing(saved, folder / "code")
    if (folder / "code").is_dir() or toolkit.weights(folder):
        return toolkit.Toolkit(folder)
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    content = ", ".join(names[:8]) + (" ..." if len(names) > 8 else "") if names else "no file"
    raise CannotLoad(
        f"it holds {content}. Expected a SavedModel in a folder with a number for a name, such as "
        "1/saved_model.pb, or code/inference.py with a model_fn, or TorchScript in model.pt."
    )


if __name__ == "__main__":
    main()
