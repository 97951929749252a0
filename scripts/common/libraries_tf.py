"""Horovod and SMDDP for TensorFlow: the same calls, imported by name."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

from common.errors import ScriptError
from common.keras2 import tf

LIBRARIES = ("horovod", "smddp")


@dataclass
class Library:
    """api: the library's module, initialised.

    mean: the mean of every rank's number; every rank must call it.
    """

    api: ModuleType
    mean: Callable[[float], float]


def load_library(name: str) -> Library:
    """Import and initialise a library. Raises ScriptError if it isn't installed here."""
    try:
        return _horovod() if name == "horovod" else _smddp()
    except ImportError as error:
        raise ScriptError(
            f"--library {name}: {error}. Horovod is in SageMaker's TensorFlow images up to 2.12 "
            "(on this machine: `make setup` with a C++ compiler); SMDDP is in those up to 2.11."
        ) from error


def _horovod() -> Library:
    import horovod.tensorflow as api

    api.init()

    def mean(value: float) -> float:
        return float(api.allreduce(tf.constant(value, tf.float32), name="mean"))

    return Library(api, mean)


def _smddp() -> Library:
    import smdistributed.dataparallel.tensorflow as api

    api.init()

    def mean(value: float) -> float:
        # SMDDP's allreduce() is for gradients alone; other numbers go "out of band".
        return float(api.oob_allreduce(tf.constant(value, tf.float32)))

    return Library(api, mean)
