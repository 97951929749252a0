"""How DistributedDataParallel adds up gradients over the ranks: its communication hooks.

DDP collects gradients in buckets. As soon as a bucket is full, while backward() still computes
others, it gives it to its hook, which returns a Future of the bucket averaged over all ranks.
"""

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from collectives import hierarchical
from common.errors import ScriptError

NAMES = ("default", "hierarchical", "fp16", "powersgd")


def register(
    ddp_model: DistributedDataParallel,
    all_reduce: str,
    powersgd_rank: int = 2,
    powersgd_start: int = 10,
) -> None:
    """Let `ddp_model` average its gradients in one of these ways. Call it before the first step.

    all_reduce is one of NAMES:
        default: the backend's own all-reduce.
        hierarchical: collectives/hierarchical.py, for parameters on the CPU and the backend gloo.
        fp16: the backend's own, in 16 bits. Small gradients become 0, large ones infinite.
        powersgd: the backend's own; each large weight's gradient travels as two thin matrices
            of width powersgd_rank, after powersgd_start steps as they are. On gloo
            `ddp_model` must have a single bucket: two at a time would wait for ever.

    Raises ScriptError where the backend cannot do it.
    """
    group, backend = ddp_model.process_group, dist.get_backend()
    if all_reduce == "hierarchical":
        if backend != "gloo":
            raise ScriptError(
                "--all-reduce hierarchical sends tensors of the CPU, and here the backend is "
                f"{backend}: take --all-reduce default"
            )
        ddp_model.register_comm_hook(TwoTier(group), averaged)
    elif all_reduce == "fp16":
        ddp_model.register_comm_hook(group, default_hooks.fp16_compress_hook)
    elif all_reduce == "powersgd":
        state = powerSGD_hook.PowerSGDState(
            group,
            matrix_approximation_rank=powersgd_rank,
            start_powerSGD_iter=powersgd_start,
        )
        ddp_model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)


def parallel(
    model: torch.nn.Module, bucket_megabytes: float | None = None
) -> DistributedDataParallel:
    """Return `model` under DDP, with buckets of at most so many MiB; None: DDP's own limits.

    The limit holds for the first bucket, too. PyTorch 2.2 leaves that one at 1 MiB whatever
    bucket_cap_mb says, and takes another value from _DEFAULT_FIRST_BUCKET_BYTES alone.
    """
    if bucket_megabytes is None:
        return DistributedDataParallel(model)
    usual = dist._DEFAULT_FIRST_BUCKET_BYTES
    dist._DEFAULT_FIRST_BUCKET_BYTES = int(bucket_megabytes * 2**20)
    try:
        return DistributedDataParallel(model, bucket_cap_mb=bucket_megabytes)
    finally:
        dist._DEFAULT_FIRST_BUCKET_BYTES = usual


class TwoTier:
    """The hierarchical all-reduce in a thread of its own, so that backward() can go on meanwhile.

    There is one thread: buckets are added up one after the other, in DDP's order, which is the
    same on every rank. With more threads a rank could take another rank's next bucket for this
    one.
    """

    def __init__(self, group: dist.ProcessGroup) -> None:
        self._group = group
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hierarchical")

    def average(self, values: torch.Tensor) -> torch.futures.Future:
        """Begin to average `values`, a vector, over all ranks; return the Future of it."""
        future: torch.futures.Future = torch.futures.Future()
        self._thread.submit(self._work, values, future)
        return future

    def _work(self, values: torch.Tensor, future: torch.futures.Future) -> None:
        try:
            values /= dist.get_world_size(self._group)  # first, as DDP does: sums stay small
            hierarchical.all_reduce(values, self._group)
        except Exception as error:  # whatever it is, backward() must raise it and not wait
            future.set_exception(error)
        else:
            future.set_result(values)


def averaged(state: TwoTier, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
    """The hook itself, in the form that DDP expects."""
    return state.average(bucket.buffer())
