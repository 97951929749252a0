"""The model that a job left, asked without any server: the measure of what a server answers."""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def predict(model: str, images: np.ndarray, session) -> np.ndarray:
    """What the SavedModel of a job says of images: probabilities, float32 (n, 10).

    Args:
        model: the address of a model.tar.gz in S3, such as result.model.
        images: pixels 0 to 255, (n, height, width, channels).
        session: what workshop.session returned.

    Raises ValueError if the file holds no SavedModel in a folder with a number as its name.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # else it tells the notebook of CUDA
    import tensorflow as tf

    bucket, key = model.removeprefix("s3://").split("/", 1)
    packed = session.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(folder, filter="data")
            names = archive.getnames()
        versions = [int(one.split("/")[0]) for one in names if one.endswith("/saved_model.pb")]
        if not versions:
            raise ValueError(f"{model} holds no SavedModel; it holds {', '.join(sorted(names))}.")
        loaded = tf.saved_model.load(f"{folder}/{max(versions)}")
        serve = loaded.signatures["serving_default"]
        return serve(images=tf.cast(images, tf.float32))["probabilities"].numpy()
