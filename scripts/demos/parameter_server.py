"""A parameter server from scratch: rank 0 holds the weights, the other ranks train.

    torchrun --standalone --nproc_per_node 5 scripts/demos/parameter_server.py --mode sync
    torchrun --standalone --nproc_per_node 5 scripts/demos/parameter_server.py --mode async

A worker pulls the weights, computes the gradient of a batch of its own part of the data, and
pushes it. In sync mode the server waits for a gradient of every worker and applies their mean: an
update. In async mode it applies each gradient as it comes, with a learning rate divided by the
workers, so that both modes move the weights equally far for equally many examples.

The server's answer to a push is the next pull: the newest weights. A message is one float32
vector: weights and a last value that is 0 at the end; or a gradient and, last, the batch's loss.

There are no checkpoints: the server's would not be enough. Where a worker is in its part of the
data, and in async mode how old the weights are that it computes with, only the worker knows.
"""

import time
from collections.abc import Iterator
from itertools import count

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from common.arguments import local_batch_size, number, parser_for
from common.data import epochs_and_steps, load_channel
from common.errors import ScriptError, run_main
from common.model_torch import Classifier, accuracy, prepare, weights_of
from common.ranks_torch import cleanup, init_distributed
from common.report import emit, report_weights


class Server:
    """Holds the weights as one vector. It never sees an image, and knows nothing of layers.

    Attributes: weights, version (updates applied so far), bytes_in, bytes_out, and pushes: for
    each gradient received, the worker, its staleness (updates), its loss, when it came (seconds).
    """

    def __init__(
        self, weights: torch.Tensor, learning_rate: float, gradients: int, momentum: float = 0.9
    ):
        self.weights = torch.nn.Parameter(weights)
        self.optimizer = torch.optim.SGD([self.weights], learning_rate, momentum)
        self.gradients_to_ask_for = gradients
        self.version = 0
        self.version_at: dict[int, int] = {}
        self.bytes_in = self.bytes_out = 0
        self.pushes: list[tuple[int, int, float, float]] = []
        self.began = time.perf_counter()

    def send_weights(self, worker: int) -> None:
        """Answer a worker's pull; the last value says whether a gradient is wanted."""
        wants_gradient = self.gradients_to_ask_for > 0
        self.gradients_to_ask_for -= int(wants_gradient)
        message = torch.cat([self.weights.detach(), torch.tensor([float(wants_gradient)])])
        dist.send(message, worker)
        self.bytes_out += message.nbytes
        self.version_at[worker] = self.version

    def receive_gradient(self, worker: int | None = None) -> tuple[int, torch.Tensor]:
        """Return (worker, gradient): of that worker, or of the first whose gradient arrives."""
        message = torch.empty(self.weights.numel() + 1)
        worker = dist.recv(message, worker)
        self.bytes_in += message.nbytes
        staleness = self.version - self.version_at[worker]  # updates since that worker's pull
        when = time.perf_counter() - self.began
        self.pushes.append((worker, staleness, float(message[-1]), when))
        return worker, message[:-1]

    def apply(self, gradient: torch.Tensor) -> None:
        """One update of the weights."""
        self.weights.grad = gradient
        self.optimizer.step()
        self.version += 1


def serve_sync(server: Server, workers: list[int], steps: int) -> None:
    """Each update waits for every worker, and applies the mean of their gradients."""
    for worker in workers:
        server.send_weights(worker)
    for _ in range(steps):
        gradients = [server.receive_gradient(worker)[1] for worker in workers]
        server.apply(torch.stack(gradients).mean(dim=0))
        for worker in workers:
            server.send_weights(worker)


def serve_async(server: Server, workers: list[int], steps: int) -> None:
    """Each gradient is applied as soon as it arrives. No worker waits for another."""
    for worker in workers:
        server.send_weights(worker)
    for _ in range(steps * len(workers)):
        worker, gradient = server.receive_gradient()
        server.apply(gradient)
        server.send_weights(worker)


def work(model: torch.nn.Module, batches: Iterator, pause: float) -> None:
    """Be a worker: pull, compute, push, until the server wants no more. pause: seconds."""
    size = parameters_to_vector(model.parameters()).numel()
    while True:
        message = torch.empty(size + 1)
        dist.recv(message, 0)
        if not message[-1]:
            return
        vector_to_parameters(message[:-1], model.parameters())
        images, labels = next(batches)
        loss = cross_entropy(model(images), labels)
        gradient = parameters_to_vector(torch.autograd.grad(loss, list(model.parameters())))
        time.sleep(pause)
        dist.send(torch.cat([gradient, loss.detach()[None]]), 0)


def answer(gradient: torch.Tensor, pause: float = 0.0) -> None:
    """Be a worker with always the same gradient, and a loss behind it. pause: seconds for it."""
    weights = torch.empty_like(gradient)
    dist.recv(weights, 0)
    while weights[-1]:
        time.sleep(pause)
        dist.send(gradient, 0)
        dist.recv(weights, 0)


def own_batches(args, workers: int, number: int, batch: int) -> Iterator:
    """Yield batches of a worker's part of the data, without end; each epoch another order."""
    images, labels = load_channel(args.training)
    dataset = TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))
    sampler: DistributedSampler = DistributedSampler(
        dataset, workers, number, seed=args.seed, drop_last=True
    )
    loader = DataLoader(dataset, batch, sampler=sampler, drop_last=True)
    for epoch in count(1):
        sampler.set_epoch(epoch - 1)  # from 0, as in scripts/train
        yield from loader


def arguments(given: list[str] | None = None):
    """Read the command line, or a list of its words."""
    parser = parser_for(__file__, __doc__)
    parser.add_argument("--mode", choices=["sync", "async"], default="sync")
    parser.add_argument("--workers", type=int, default=0, help="0: every rank but the server")
    pause = momentum = number(float, 0)
    parser.add_argument("--momentum", type=momentum, default=0.9, help="of the server's SGD")
    parser.add_argument("--slow-ms", type=pause, default=0, help="the last worker's pause a batch")
    return parser.parse_args(given)


def train_with(*words: str) -> dict | None:
    """`train` with the words of a command line, for a notebook's ranks."""
    return train(arguments(list(words)))


def train(args) -> dict | None:
    """Train on the ranks of this group; every rank must call it alike.

    Args:
        args: what `arguments` returned. A step is one gradient of each worker.

    Returns:
        on rank 0 what the server saw: pushes, bytes_in, bytes_out, seconds, accuracy (0 to 1)
        and the weights (arrays). None on the others.

    Raises:
        ScriptError: there are too few ranks, or the workers can't take equal parts of a batch.
    """
    rank, others = dist.get_rank(), dist.get_world_size() - 1
    workers = args.workers or others
    if not 1 <= workers <= others:
        raise ScriptError(
            f"{others + 1} ranks are a server and {others} workers, not {workers}: choose another "
            "--workers, or start more ranks (torchrun --nproc_per_node)"
        )
    batch = local_batch_size(args.global_batch_size, workers)
    prepare(args, ranks_here=others + 1)
    test = load_channel(args.test)
    model = Classifier(test[0].shape[1:], args.hidden_units)
    if rank == 0:
        return serve(args, model, workers, test)
    if rank <= workers:  # a rank too many has nothing to do
        pause = args.slow_ms / 1000 if rank == workers else 0
        work(model, own_batches(args, workers, rank - 1, batch), pause)
    return None


def serve(args, model: Classifier, workers: int, test) -> dict:
    """Be the server from the first weights to the last; return what `train` returns."""
    examples = len(load_channel(args.training)[1])
    steps = sum(steps for _, steps in epochs_and_steps(args, examples))
    rate = args.learning_rate / (workers if args.mode == "async" else 1)
    weights = parameters_to_vector(model.parameters()).detach()
    server = Server(weights, rate, steps * workers, args.momentum)
    loop = serve_sync if args.mode == "sync" else serve_async
    loop(server, list(range(1, workers + 1)), steps)
    seconds = time.perf_counter() - server.began
    vector_to_parameters(server.weights.detach(), model.parameters())
    return {
        "pushes": server.pushes,
        "bytes_in": server.bytes_in,
        "bytes_out": server.bytes_out,
        "seconds": seconds,
        "accuracy": accuracy(model, *test),
        "weights": weights_of(model),
    }


def main() -> None:
    """Train on the ranks that the launcher started; the server prints what it saw."""
    args = arguments()
    init_distributed()
    seen = train(args)
    if seen:
        for worker, staleness, loss, when in seen.pop("pushes"):
            emit(event="push", worker=worker, staleness=staleness, loss=loss, seconds=when)
        report_weights(seen.pop("weights"))
        emit(event="served", **seen)
    cleanup()


if __name__ == "__main__":
    run_main(main)
