"""A server and its workers: the same job with updates applied together, or one by one.

Rank 0 holds the weights. Every other rank takes them, computes a gradient, sends it, and waits
for new ones. The model is softmax regression: one layer from pixels to ten classes.
"""

import time

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

WEIGHTS = (64 + 1, 10)  # a row for each pixel and one for the bias
COUNT = WEIGHTS[0] * WEIGHTS[1]
LAST = -1.0  # in place of a version: there is no more to do


def train(shard: tuple, together: bool, updates: int, rate: float, pause: list[float]):
    """Run server or worker, by rank.

    Args:
        shard: this rank's images float32 (n, 64), 0 to 1, and labels (n,). The server needs none.
        together: True: wait for a gradient of each worker and apply their mean, as one update.
            False: apply each gradient when it comes, as an update of its own.
        updates: after how many to stop.
        rate: the learning rate.
        pause: seconds that rank r adds to each of its steps, to be a slower computer.

    Returns: on rank 0 a record for each update, on the others None. seconds: since the first
        weights went out. weights: after it. worker: whose gradient it was (0: of all).
        staleness: how many updates came between taking the weights and applying the gradient.
    """
    if dist.get_rank() > 0:
        return _work(*map(torch.from_numpy, shard), pause[dist.get_rank()])
    server = _Server(rate)
    while len(server.records) < updates:
        (server.update_together if together else server.update_by_the_first)()
    server.end()
    return server.records


def loss_of(weights: torch.Tensor, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy of weights (65, 10) on images (n, 64)."""
    return cross_entropy(images @ weights[:-1] + weights[-1], labels)


def losses(records: list[dict], images: np.ndarray, labels: np.ndarray) -> list[float]:
    """Return the loss after each record's update."""
    images, labels = torch.from_numpy(images), torch.from_numpy(labels)
    return [loss_of(torch.from_numpy(one["weights"]), images, labels).item() for one in records]


def _work(images, labels, pause: float) -> None:
    """Until the server says that it is over: take weights, compute, send."""
    message = torch.empty(COUNT + 1)  # the weights' version, then the weights or a gradient
    while True:
        dist.recv(message, src=0)
        if message[0] == LAST:
            return
        weights = message[1:].view(WEIGHTS).requires_grad_()
        gradient = torch.autograd.grad(loss_of(weights, images, labels), weights)[0]
        time.sleep(pause)
        dist.send(torch.cat([message[:1].detach(), gradient.flatten()]), dst=0)


class _Server:
    """Rank 0: the weights, and which workers compute a gradient at the moment."""

    def __init__(self, rate: float) -> None:
        self.weights, self.rate, self.records = torch.zeros(COUNT), rate, []
        self.workers = range(1, dist.get_world_size())
        self.began = time.perf_counter()
        for worker in self.workers:
            self.send_weights(worker)

    def send_weights(self, worker: int) -> None:
        dist.send(torch.cat([torch.tensor([float(len(self.records))]), self.weights]), dst=worker)

    def update_together(self) -> None:
        """Sync: nobody gets new weights before the slowest has sent its gradient."""
        messages = [self.receive(worker)[1] for worker in self.workers]
        self.apply(torch.stack(messages).mean(0), worker=0)
        for worker in self.workers:
            self.send_weights(worker)

    def update_by_the_first(self) -> None:
        """Async: whoever is ready first; the others still compute with older weights."""
        worker, message = self.receive(None)
        self.apply(message, worker)
        self.send_weights(worker)

    def receive(self, worker: int | None) -> tuple[int, torch.Tensor]:
        message = torch.empty(COUNT + 1)
        return dist.recv(message, src=worker), message

    def apply(self, message: torch.Tensor, worker: int) -> None:
        staleness = len(self.records) - int(message[0])
        self.weights -= self.rate * message[1:]
        seconds = time.perf_counter() - self.began
        self.records.append(
            {
                "seconds": seconds,
                "weights": self.weights.view(WEIGHTS).clone(),
                "worker": worker,
                "staleness": staleness,
            }
        )

    def end(self) -> None:
        """Take what is still on its way, and tell every worker that it is over."""
        for worker in self.workers:
            self.receive(worker)
            dist.send(torch.full((COUNT + 1,), LAST), dst=worker)
