"""Inference with the model that a job left, without any server: the reference for its answers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from workshop.paths import DEMOS

if TYPE_CHECKING:
    import numpy as np

    from workshop.jobs.session import Session

SECONDS = 300  # for one call; most of it is TensorFlow's import


class InferenceFailed(Exception):
    """The model gave no answer; the message has the last lines of its output."""


def infer(model: str, images: np.ndarray, session: Session) -> np.ndarray:
    """The predictions of a job's SavedModel for images: probabilities, float32 (n, 10).

    It runs in a process of its own (scripts/demos/ask_model_tf.py).

    Args:
        model: the address of a model.tar.gz in S3, such as result.model.
        images: pixels 0 to 255, (n, height, width, channels).
        session: what workshop.session returned.

    Raises:
        InferenceFailed: the file holds no SavedModel, or the model does not take such images.
    """
    import numpy as np

    bucket, key = model.removeprefix("s3://").split("/", 1)
    with tempfile.TemporaryDirectory() as folder:
        archive, inputs, outputs = (
            Path(folder) / name for name in ("model.tar.gz", "images.npy", "probabilities.npy")
        )
        session.client("s3").download_file(bucket, key, str(archive))
        np.save(inputs, images)
        program = DEMOS / "ask_model_tf.py"
        command = [sys.executable, *map(str, (program, archive, inputs, outputs))]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired as error:
            raise InferenceFailed(f"No answer after {SECONDS} s from {model}.") from error
        if done.returncode:
            last = "\n".join(f"    {line}" for line in done.stderr.strip().splitlines()[-12:])
            raise InferenceFailed(f"{model} gave no answer:\n{last}")
        return np.load(outputs)
