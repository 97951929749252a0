"""Run a learner's parameter server on real ranks, and note what it did in which order."""

from collections.abc import Callable

import torch
import torch.distributed as dist

from parameter_server import Server, answer

SIZE = 3  # weights


class WatchedServer(Server):
    """Notes in `log`, in order: ("push", worker), ("answer", worker) or ("stop", worker)."""

    def __init__(self, gradients: int):
        super().__init__(torch.zeros(SIZE), 0.1, gradients, momentum=0)
        self.log: list[tuple[str, int]] = []

    def send_weights(self, worker: int) -> None:
        self.log.append(("answer" if self.gradients_to_ask_for else "stop", worker))
        super().send_weights(worker)

    def receive_gradient(self, worker: int | None = None) -> tuple[int, torch.Tensor]:
        worker, gradient = super().receive_gradient(worker)
        self.log.append(("push", worker))
        return worker, gradient


def warm_up() -> None:
    """Load what is needed here: on a busy machine that takes longer than to serve."""
    server = WatchedServer(0)
    server.apply(torch.zeros(SIZE))  # the first step of an optimizer loads more of torch


def call(serve: Callable, pauses: list[float], steps: int, ahead: int) -> dict | None:
    """Serve with serve(server, workers, steps, ahead) on rank 0; the others are workers.

    pauses: seconds that each worker takes for a gradient, which is its own number, SIZE times.

    Returns on rank 0: log; weights; expected: what they are if each gradient was applied once.
    """
    rank, workers = dist.get_rank(), list(range(1, len(pauses) + 1))
    if rank in workers:
        answer(torch.full((SIZE + 1,), float(rank)), pauses[rank - 1])
    if rank:
        return None
    server = WatchedServer(steps * len(workers))
    serve(server, workers, steps, ahead)
    pushed = sum(worker for kind, worker in server.log if kind == "push")
    weights = server.weights.tolist()
    return {"log": server.log, "weights": weights, "expected": [-0.1 * pushed] * SIZE}
