"""How long a training step takes: on one rank, on ranks that don't talk, and on ranks that do."""

import functools
import time

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from common.model_torch import Classifier

WARM_UP = 2  # steps; DDP arranges its gradients anew after the first


def step_seconds(setting: dict, steps: int) -> float | None:
    """Time `steps` training steps on this rank; return the mean seconds of one.

    Args:
        setting: ranks: "one" (rank 0 alone), "apart" (every rank a model of its own: they
            exchange nothing) or "together" (one model, DistributedDataParallel).
            batch: images per rank and step. side: their height and width in pixels.
            hidden_units: of the dense layer. threads (1 without it): CPU threads of a rank.
            onednn (True without it): whether torch may use that library.

    Returns: None on a rank that has no part in it.
    """
    if setting["ranks"] == "one" and dist.get_rank() > 0:
        return None
    torch.set_num_threads(setting.get("threads", 1))
    torch.backends.mkldnn.enabled = setting.get("onednn", True)  # oneDNN's former name
    try:
        return _timed(_step_of(setting), steps, wait=setting["ranks"] != "one")
    finally:
        torch.set_num_threads(1)
        torch.backends.mkldnn.enabled = True


def _step_of(setting: dict):
    """Return a function that runs one training step."""
    torch.manual_seed(dist.get_rank())
    side = setting["side"]
    images = torch.randint(256, (setting["batch"], side, side, 1), dtype=torch.uint8)
    labels = torch.randint(10, (setting["batch"],))
    model = Classifier((side, side, 1), setting["hidden_units"])
    if setting["ranks"] == "together":
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)

    def step() -> None:
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def _timed(step, steps: int, wait: bool) -> float:
    for _ in range(WARM_UP):
        step()
    if wait:
        dist.barrier()  # begin together
    began = time.perf_counter()
    for _ in range(steps):
        step()
    return (time.perf_counter() - began) / steps


@functools.cache
def _weights(side: int, hidden_units: int) -> int:
    model = Classifier((side, side, 1), hidden_units)
    return sum(one.numel() for one in model.parameters())


def exchange(setting: dict) -> None:
    """All-reduce as many numbers as the model has weights: what ranks do in each step."""
    dist.all_reduce(torch.ones(_weights(setting["side"], setting["hidden_units"])))
