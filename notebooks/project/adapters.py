"""Your code meets the tests here, and here only. Write modules of your own beside this file.

Each function runs on every rank, after torch.distributed's group (gloo) was made. Replace the
`raise` lines by imports from your modules and calls: import inside the function, so that an
unfinished part does not fail another. Keep the names and arguments.
"""

import torch
from torch import nn


def all_reduce(tensor: torch.Tensor, op: str) -> None:
    """Part 1. Replace tensor, in place, by the sum or the mean over all ranks.

    tensor: contiguous, on the CPU, of the same shape and type on every rank, of any size, also
    empty. op: "sum" or "mean".
    """
    raise NotImplementedError("part 1: call your all-reduce in adapters.all_reduce")


def get_ddp(module: nn.Module, bucket_bytes: int) -> nn.Module:
    """Part 2. Return a module that is called like `module`, with rank 0's weights and buffers.

    bucket_bytes: the gradients that one exchange carries. A bucket may be larger by one parameter.
    """
    raise NotImplementedError("part 2: return your module from adapters.get_ddp")


def ddp_before_backward(ddp: nn.Module, samples: int) -> None:
    """Part 2. Called after forward. samples: over how many this rank's loss is the mean."""
    raise NotImplementedError("part 2: adapters.ddp_before_backward")


def ddp_after_backward(ddp: nn.Module) -> None:
    """Part 2. Return when every gradient is that of the mean loss over all ranks' samples."""
    raise NotImplementedError("part 2: wait for your buckets in adapters.ddp_after_backward")


def get_sharded_optimizer(
    params: list[nn.Parameter], optimizer_class: type[torch.optim.Optimizer], **options
):
    """Part 3. Return an optimizer with step(), zero_grad() and param_groups.

    params: the same values on every rank, and at step() the same gradients. optimizer_class,
    options: what updates them, such as torch.optim.AdamW and lr=0.01.
    """
    raise NotImplementedError("part 3: return your optimizer from adapters.get_sharded_optimizer")


def hierarchical_all_reduce(
    tensor: torch.Tensor, ranks_per_instance: int, chunk_bytes: int
) -> None:
    """Part 4. Replace tensor, in place, by the sum over all ranks.

    Ranks 0 to ranks_per_instance - 1 are on the first instance, as many on each of the others.
    chunk_bytes: of the tensor, that travel together.
    """
    raise NotImplementedError("part 4: call your all-reduce in adapters.hierarchical_all_reduce")
