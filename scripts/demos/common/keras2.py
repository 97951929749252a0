"""TensorFlow with Keras 2, whatever TensorFlow brings: `from common.keras2 import tf`.

TensorFlow 2.16 and later bring Keras 3, which has no parameter-server training and which
Horovod doesn't know. The package tf-keras is Keras 2 for those versions. This module must be
the first to import TensorFlow in a process: the choice is made at import.
"""

import importlib.util
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # warnings about absent GPUs drown the metrics
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import tensorflow as tf

from common.errors import ScriptError

__all__ = ["tf"]

_version = tuple(int(part) for part in tf.__version__.split(".")[:2])
if _version >= (2, 16) and importlib.util.find_spec("tf_keras") is None:
    raise ScriptError(
        f"TensorFlow {tf.__version__} brings Keras 3 and these scripts need Keras 2: install "
        f"tf-keras=={_version[0]}.{_version[1]}.*"
    )
