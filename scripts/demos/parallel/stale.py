"""The parameter server of lesson 03 on one layer: updates applied together, or one by one.

Rank 0 is the server of scripts/demos/parameter_server.py, the others are its workers. The model is
softmax regression: one layer from pixels to ten classes.
"""

from itertools import repeat

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from parameter_server import Server, serve_async, serve_sync, work

PIXELS, CLASSES = 64, 10


class RecordingServer(Server):
    """A server that keeps the weights after each update, and when that was.

    after: for each update, its weights (a vector) and seconds since the start.
    """

    after: list[tuple[torch.Tensor, float]]

    def apply(self, gradient: torch.Tensor) -> None:
        """One update of the weights."""
        super().apply(gradient)
        self.after.append((self.weights.detach().clone(), self.pushes[-1][-1]))


def train(shard: tuple, together: bool, updates: int, rate: float, pause: list[float]):
    """Run server or worker, by rank.

    Args:
        shard: this rank's images float32 (n, 64), 0 to 1, and labels (n,). The server needs none.
        together: True: wait for a gradient of each worker and apply their mean, as one update.
            False: apply each gradient when it comes, as an update of its own.
        updates: after how many to stop.
        rate: the learning rate.
        pause: seconds that rank r adds to each of its steps, to be a slower computer.

    Returns: on the workers what `parameter_server.work` returns: when each gradient was computed.
        On rank 0 a record for each update. seconds: since the first weights went out. weights:
        after it, a vector. worker: whose gradient it was (0: of all). staleness: how many updates
        came between taking the weights and applying the gradient.
    """
    rank, workers, model = dist.get_rank(), list(range(1, dist.get_world_size())), layer()
    if rank > 0:
        return work(model, repeat(tuple(map(torch.from_numpy, shard))), pause[rank])
    steps = updates if together else -(-updates // len(workers))  # gradients of each worker
    weights = parameters_to_vector(model.parameters()).detach()
    server = RecordingServer(weights, rate, steps * len(workers), momentum=0)
    server.after = []
    (serve_sync if together else serve_async)(server, workers, steps)
    whose = [(0, 0)] * updates if together else [push[:2] for push in server.pushes]
    return [
        {"seconds": seconds, "weights": weights, "worker": worker, "staleness": staleness}
        for (weights, seconds), (worker, staleness) in zip(server.after, whose, strict=True)
    ][:updates]


def layer() -> torch.nn.Module:
    """Return the model, with weights of 0."""
    model = torch.nn.Linear(PIXELS, CLASSES)
    vector_to_parameters(torch.zeros((PIXELS + 1) * CLASSES), model.parameters())
    return model


def losses(records: list[dict], images: np.ndarray, labels: np.ndarray) -> list[float]:
    """Return the mean cross-entropy after each record's update, of images (n, 64)."""
    model, values = layer(), []
    for record in records:
        vector_to_parameters(torch.from_numpy(record["weights"]), model.parameters())
        with torch.no_grad():
            scores = model(torch.from_numpy(images))
        values.append(cross_entropy(scores, torch.from_numpy(labels)).item())
    return values
