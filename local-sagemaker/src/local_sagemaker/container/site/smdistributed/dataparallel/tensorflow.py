"""`import smdistributed.dataparallel.tensorflow` where SMDDP does not exist.

The real module has Horovod's calls under its own name, so Horovod stands in for it. The
gradients are averaged exactly; the speed is Horovod's, and nothing measured here may be called
SMDDP's. Needs Horovod: without it the import fails and says so.
"""

from __future__ import annotations

try:
    import horovod.tensorflow as _horovod
except ImportError as error:
    raise ImportError(
        "the local stand-in for SMDDP's TensorFlow module is Horovod, which is not installed here"
    ) from error

from horovod.tensorflow import (  # noqa: F401 (what a script finds here)
    DistributedGradientTape,
    broadcast,
    broadcast_variables,
    init,
    local_rank,
    local_size,
    rank,
    shutdown,
    size,
)


def oob_allreduce(tensor):
    """The mean over all ranks of a tensor that is no gradient."""
    return _horovod.allreduce(tensor, name="oob")
