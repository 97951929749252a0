"""Run a learner's layer whose weight is divided among the ranks; compare it with a whole one."""

from collections.abc import Callable

import torch
import torch.distributed as dist

ROWS, INPUTS, BATCH = 16, 24, 4  # rows of each rank's shard


def call(layer: Callable) -> dict:
    """Call layer(x, shard) and its backward on this rank; say what is right.

    Returns: output and x: whether they are an ordinary layer's (x: its gradient; None: there is
    none). shard: its gradient is the ranks' "mean", their "sum", of this rank "alone", another
    ("wrong"), or None. saved: numbers that autograd keeps for backward, counted once;
    most_saved: of x and shard.
    """
    rank, world_size = dist.get_rank(), dist.get_world_size()
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(world_size * ROWS, INPUTS, generator=generator)
    batches = torch.randn(world_size, BATCH, INPUTS, generator=generator)
    directions = torch.randn(world_size, BATCH, world_size * ROWS, generator=generator)
    rows = slice(rank * ROWS, (rank + 1) * ROWS)
    x, shard = batches[rank].clone().requires_grad_(), weight[rows].clone().requires_grad_()
    saved: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes() // 4
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = layer(x, shard)
    if output.requires_grad and output.shape == directions[rank].shape:
        output.backward(directions[rank])
    by_rank = [
        direction.T @ batch for direction, batch in zip(directions, batches, strict=True)
    ]  # gradients of the whole weight
    total = torch.stack(by_rank).sum(0)[rows]
    names = {"mean": total / world_size, "sum": total, "alone": by_rank[rank][rows]}
    return {
        "output": same(output, batches[rank] @ weight.T),
        "x": None if x.grad is None else same(x.grad, directions[rank] @ weight),
        "shard": None if shard.grad is None else _name(shard.grad, names),
        "saved": sum(saved.values()),
        "most_saved": x.numel() + shard.numel(),
    }


def same(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two tensors have one shape, and the same numbers but for rounding."""
    return left.shape == right.shape and torch.allclose(left, right, rtol=1e-4, atol=1e-5)


def _name(gradient: torch.Tensor, names: dict[str, torch.Tensor]) -> str:
    return next((name for name, value in names.items() if same(gradient, value)), "wrong")
