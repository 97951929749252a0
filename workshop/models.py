"""The model that a job left, asked without any server: the measure of what a server answers."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from workshop.launch.processes import run_together
from workshop.paths import SCRIPTS

if TYPE_CHECKING:
    import numpy as np

SECONDS = 300  # for one answer; most of it is TensorFlow's import


def predict(model: str, images: np.ndarray, session) -> np.ndarray:
    """What the SavedModel of a job says of images: probabilities, float32 (n, 10).

    It is asked in a process of its own (scripts/ask_model_tf.py).

    Args:
        model: the address of a model.tar.gz in S3, such as result.model.
        images: pixels 0 to 255, (n, height, width, channels).
        session: what workshop.session returned.

    Raises:
        ProcessFailed: the file holds no SavedModel, or the model does not take such images.
    """
    import numpy as np

    bucket, key = model.removeprefix("s3://").split("/", 1)
    with tempfile.TemporaryDirectory() as folder:
        packed, asked, answered = (
            Path(folder) / name for name in ("model.tar.gz", "images.npy", "answers.npy")
        )
        session.client("s3").download_file(bucket, key, str(packed))
        np.save(asked, images)
        command = [sys.executable, SCRIPTS / "ask_model_tf.py", packed, asked, answered]
        run_together(command, timeout=SECONDS)
        return np.load(answered)
