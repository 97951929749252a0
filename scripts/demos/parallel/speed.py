"""Training steps to be timed, on one rank or on several, and where the time of a step goes."""

import functools
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from common.model_torch import Classifier

WARM_UP = 2  # steps; DDP rearranges its gradients after the first


def training_step(setting: dict) -> Callable[[], None]:
    """Return a function that runs one training step on this rank.

    Args:
        setting: ranks: "one" or "independent" (this rank has a model of its own and exchanges
            nothing) or "together" (one model, DistributedDataParallel).
            batch: images per rank and step. side: their height and width in pixels.
            hidden_units: of the dense layer. threads (1 without it): CPU threads of a rank.
            onednn (True without it): whether torch may use that library.
    """
    torch.set_num_threads(setting.get("threads", 1))
    torch.backends.mkldnn.enabled = setting.get("onednn", True)  # oneDNN's former name
    model: torch.nn.Module
    model, images, labels = _model_and_batch(setting)
    if setting["ranks"] == "together":
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)

    def step() -> None:
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def step_parts(setting: dict, steps: int) -> list[tuple[str, float, float]]:
    """Run steps in which nothing overlaps, and return what this rank did when.

    Every rank must call it. DDP begins to send while backward() still computes; here a rank first
    computes the whole gradient, then waits until all have theirs, then sends.

    Returns: for each part its name ("compute", "wait", "communicate" or "update") and the seconds
        from the common start to its begin and to its end.
    """
    torch.set_num_threads(1)
    model, images, labels = _model_and_batch(setting)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    parts: list[tuple[str, float, float]] = []
    for step in range(-WARM_UP, steps):
        if step == 0:
            parts.clear()
            dist.barrier()
            start = time.perf_counter()
        times = [time.perf_counter()]
        optimizer.zero_grad()
        cross_entropy(model(images), labels).backward()
        gradient = torch.cat([weight.grad.flatten() for weight in model.parameters()])
        times.append(time.perf_counter())
        dist.barrier()
        times.append(time.perf_counter())
        dist.all_reduce(gradient)
        times.append(time.perf_counter())
        optimizer.step()
        times.append(time.perf_counter())
        names = ("compute", "wait", "communicate", "update")
        parts += list(zip(names, times, times[1:], strict=False))
    return [(name, began - start, ended - start) for name, began, ended in parts]


def exchange(setting: dict) -> None:
    """All-reduce as many numbers as the model has weights: what ranks do in each step."""
    dist.all_reduce(torch.ones(_weights(setting["side"], setting["hidden_units"])))


def _model_and_batch(setting: dict) -> tuple[Classifier, torch.Tensor, torch.Tensor]:
    torch.manual_seed(dist.get_rank())
    side = setting["side"]
    images = torch.randint(256, (setting["batch"], side, side, 1), dtype=torch.uint8)
    labels = torch.randint(10, (setting["batch"],))
    return Classifier((side, side, 1), setting["hidden_units"]), images, labels


@functools.cache
def _weights(side: int, hidden_units: int) -> int:
    model = Classifier((side, side, 1), hidden_units)
    return sum(parameter.numel() for parameter in model.parameters())
