"""Several GPUs, or several threads, in one process: what train_torch_dp.py needs."""

import os
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

from common.errors import ScriptError
from common.report import emit


class ThreadParallel(nn.Module):
    """DataParallel's steps with threads on the CPU, where torch's own class does none of them.

    On the CPU the replicas lie in the same memory, so no weights are copied. backward() adds
    all parts' gradients into those weights. It runs in one thread, because autograd has one for
    each device, and the CPU is one device.

    module: its forward must not change it (no batch normalisation). replicas: threads.
    """

    def __init__(self, module: nn.Module, replicas: int):
        super().__init__()
        self.module, self.replicas = module, replicas
        self._threads = ThreadPoolExecutor(replicas)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Return the module's output for the whole batch, in the batch's order."""
        with_gradients = torch.is_grad_enabled()  # a setting that each thread has of its own

        def apply(part: torch.Tensor) -> torch.Tensor:
            with torch.set_grad_enabled(with_gradients):
                return self.module(part)

        parts = batch.tensor_split(self.replicas)  # scatter
        outputs = list(self._threads.map(apply, parts))  # apply, a thread for each part
        return torch.cat(outputs)  # gather


def data_parallel(model: nn.Module, cpu_replicas: int) -> nn.Module:
    """Wrap the model for all GPUs of this machine, and say in how many parts a batch is computed.

    cpu_replicas: threads to use instead, on a machine without GPUs; 0 for none.
    """
    if cpu_replicas:
        wrapped, parts = ThreadParallel(model, cpu_replicas), cpu_replicas
    else:
        wrapped = nn.DataParallel(model)
        parts = max(1, len(wrapped.device_ids))
    emit(event="parallel", kind=type(wrapped).__name__, gpus=torch.cuda.device_count(), parts=parts)
    return wrapped


def check_one_process(cpu_replicas: int) -> None:
    """Raise ScriptError where the script would do something else than what was asked for."""
    if max(int(os.environ.get(name, 1)) for name in ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE")) > 1:
        raise ScriptError(
            "several processes were started, and each would train a model of its own. Start "
            "this script with python, or use train_torch_ddp.py"
        )
    if cpu_replicas < 0 or (cpu_replicas and torch.cuda.is_available()):
        raise ScriptError(
            f"--cpu-replicas {cpu_replicas}: give a positive number, and only on a machine "
            "without GPUs; with them, leave it out"
        )
