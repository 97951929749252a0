"""TensorFlow with Keras 2, whatever TensorFlow brings: `from common.keras2 import tf`.

TensorFlow 2.16 and later bring Keras 3, which has no parameter-server training and which
Horovod doesn't know. The package tf-keras is Keras 2 for those versions. This module must be
the first to import TensorFlow in a process: the choice is made at import.
"""

import contextlib
import gc
import importlib.util
import os
import sys
from collections.abc import Iterator

from common.errors import ScriptError

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # warnings about absent GPUs drown the metrics
os.environ["TF_USE_LEGACY_KERAS"] = "1"


@contextlib.contextmanager
def _quickly() -> Iterator[None]:
    """Import TensorFlow with a third less work: each rank pays for it.

    Keras imports some packages where it finds them, for inputs and files that no script here has;
    None stands for "not installed". And the garbage collector would go through what an import
    makes, again and again, and find no garbage.
    """
    left_out = {"pandas", "scipy", "PIL", "h5py"} - set(sys.modules)
    sys.modules.update(dict.fromkeys(left_out))  # type: ignore[arg-type]
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        for name in left_out:
            del sys.modules[name]


with _quickly():
    import tensorflow as tf

    tf.keras.layers  # noqa: B018 (an older TensorFlow imports Keras here)

__all__ = ["tf"]

_version = tuple(int(part) for part in tf.__version__.split(".")[:2])
if _version >= (2, 16) and importlib.util.find_spec("tf_keras") is None:
    raise ScriptError(
        f"TensorFlow {tf.__version__} brings Keras 3 and these scripts need Keras 2: install "
        f"tf-keras=={_version[0]}.{_version[1]}.*"
    )
