"""A worker: load a model, then answer /ping and /invocations, as a serving container does.

    python -m local_sagemaker.hosting.runtime FD PARENT

FD: a socket that listens already, on loopback. PARENT: the emulator's process id. The key that its
requests show is in $LOCAL_SAGEMAKER_KEY, the model in $SAGEMAKER_BASE_DIR/model. What is served is
decided by what lies there:

    <number>/saved_model.pb    TensorFlow Serving's REST forms; code/inference.py may hold handlers
    anything else              the functions of the PyTorch image: model_fn, predict_fn, ...
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from pathlib import Path

from local_sagemaker.cluster import linux
from local_sagemaker.hosting.runtime.http import KEY, CannotLoad, serve


def main() -> None:
    """Serve until the emulator ends. Exit 1, with a sentence, if the model cannot be loaded."""
    listener = socket.socket(fileno=int(sys.argv[1]))
    key = os.environ.pop(KEY)
    _die_with(int(sys.argv[2]))
    try:
        model = load(Path(os.environ["SAGEMAKER_BASE_DIR"]) / "model")
    except CannotLoad as error:
        print(f"The model cannot be loaded: {error}", flush=True)
        sys.exit(1)
    serve(listener, model, key)


def load(folder: Path):
    """What answers for the model in `folder`. Raises CannotLoad, or what the model raises."""
    from local_sagemaker.hosting.runtime import defaults, saved_models, toolkit

    pytorch = "pytorch" in os.environ.get("LOCAL_SAGEMAKER_IMAGE", "")
    if not pytorch and (found := saved_models.find(folder)):
        return saved_models.TensorFlowServing(found, folder / "code")
    if (folder / "code").is_dir() or defaults.weights(folder):
        return toolkit.Toolkit(folder)
    raise CannotLoad(
        f"it holds {_listing(folder)}. Expected a SavedModel in a folder with a number for a "
        "name, such as 1/saved_model.pb, or code/inference.py with a model_fn, or TorchScript in "
        "model.pt."
    )


def _listing(folder: Path) -> str:
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return ", ".join(names[:8]) + (" ..." if len(names) > 8 else "") if names else "no file"


def _die_with(parent: int) -> None:
    """End when the emulator does, also when it is killed."""
    with contextlib.suppress(OSError, AttributeError):  # prctl is Linux's
        linux.die_with_parent()
    if os.getppid() != parent:
        os._exit(1)
    threading.Thread(target=_wait_for_the_end, daemon=True).start()


def _wait_for_the_end() -> None:
    """Standard input is a pipe that the emulator holds: its end means that the emulator is gone."""
    with contextlib.suppress(OSError):
        while os.read(0, 64):
            pass
    os._exit(0)


if __name__ == "__main__":
    main()
