"""Mistakes of a few lines, one a function: `if args.fixed` is where the right ones differ.

Most train a small model on random numbers. Collectives give up after PATIENCE.
"""

import hashlib
import os
import resource
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.utils.data import DataLoader, Dataset, DistributedSampler, TensorDataset

from common.data import CLASSES, load_channel
from common.evidence import Evidence
from common.model_torch import Classifier, weights_of
from common.ranks_torch import all_reduce_mean, cleanup, init_distributed
from common.report import emit

PATIENCE = timedelta(seconds=6)
STEPS = 8
SLOW_STEPS = 50  # enough to tell a slow training from its start
SAVES = 200  # at most, of a file that each rank writes
WAYS: dict[str, Callable] = {}


def way(function: Callable) -> Callable:
    """Add a function to WAYS under its name."""
    WAYS[function.__name__] = function
    return function


def model_of(width: int = 64, layers: int = 2, **ddp) -> DistributedDataParallel:
    """Return a model of equal layers, the same on every rank."""
    torch.manual_seed(0)
    return DistributedDataParallel(
        nn.Sequential(*(nn.Linear(width, width) for _ in range(layers))), **ddp
    )


def train_step(model: nn.Module, optimizer: SGD, batch: torch.Tensor) -> float:
    """Train one step; return the loss."""
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def train(model: nn.Module, batches: Iterable[torch.Tensor]) -> None:
    """Train a step on each batch."""
    optimizer = SGD(model.parameters(), 0.01)
    for batch in batches:
        train_step(model, optimizer, batch)


def random_batches(steps: int = STEPS, rows: int = 8, width: int = 64) -> Iterator[torch.Tensor]:
    """Give batches of random numbers, each when it is needed."""
    return (torch.randn(rows, width) for _ in range(steps))


def start(args, timeout: timedelta | None = None) -> tuple[int, int]:
    """Join the other ranks over gloo; return (rank, world_size)."""
    init_distributed("gloo", timeout)
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    emit(event="rank", rank=rank, pid=os.getpid())
    return rank, world_size


def end(rank: int, **record) -> None:
    """Say that this rank has come to its end, and leave together."""
    emit(event="end", rank=rank, **record)
    cleanup()


# The ranks do not call the same collectives


@way
def skipped_batch(args):
    """Rank 1 leaves a batch out that it does not like."""
    rank, _ = start(args, PATIENCE)
    model = nn.Linear(64, 64)
    for step in range(STEPS):
        batch = torch.randn(8, 64)
        time.sleep(0.25)  # for a step as long as one of a larger model
        if step == 4 and rank == 1 and not args.fixed:
            continue  # the other rank is already in its all-reduce
        model(batch).square().mean().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
    total = torch.zeros(1)
    dist.all_reduce(total)
    end(rank)


@way
def uneven_batches(args):
    """Rank 0 has fewer batches than rank 1, and goes on to the evaluation."""
    rank, _ = start(args, PATIENCE)
    train(model_of(), random_batches(STEPS if args.fixed else STEPS + 3 * rank))
    correct = torch.zeros(1)
    dist.all_reduce(correct)
    end(rank)


@way
def only_rank_0(args):
    """Rank 0 alone evaluates, and its evaluation averages over the ranks."""
    rank, _ = start(args, PATIENCE)
    train(model_of(), random_batches())
    if rank == 0 or args.fixed:
        accuracy = torch.zeros(1)
        dist.all_reduce(accuracy)
    dist.barrier()
    end(rank)


@way
def different_order(args):
    """Each rank averages two gradients in the order in which it meets them."""
    rank, _ = start(args, PATIENCE)
    weight, bias = torch.ones(64, 64), torch.ones(64)
    if rank == 0 or args.fixed:
        dist.all_reduce(weight)
        dist.all_reduce(bias)
    else:
        dist.all_reduce(bias)
        dist.all_reduce(weight)
    end(rank)


@way
def gathered_sizes(args):
    """The ranks gather predictions of a last batch that is smaller on rank 1."""
    rank, _ = start(args, PATIENCE)
    count = 8 if rank == 0 or args.fixed else 5
    predictions = torch.zeros(count)
    dist.all_reduce(predictions)
    end(rank)


@way
def other_type(args):
    """Rank 1 brings its number as float64, as Python's and numpy's are."""
    rank, _ = start(args, PATIENCE)
    loss = torch.zeros(8, dtype=torch.float32 if rank == 0 or args.fixed else torch.float64)
    dist.all_reduce(loss)
    end(rank)


@way
def mismatched_shapes(args):
    """Every rank counts the classes in its own part of the data, which is sorted by label."""
    rank, world_size = start(args)
    images, labels = torch.randn(128, 64), torch.arange(128) * CLASSES // 128
    images, labels = (part.tensor_split(world_size)[rank] for part in (images, labels))
    classes = CLASSES if args.fixed else int(labels.max()) + 1
    emit(event="model", rank=rank, classes=classes)
    model = DistributedDataParallel(nn.Linear(64, classes))
    optimizer = SGD(model.parameters(), 0.01)
    for _ in range(STEPS):
        optimizer.zero_grad()
        cross_entropy(model(images), labels).backward()
        optimizer.step()
    end(rank)


@way
def group_of_some(args):
    """Rank 0 makes a group, and rank 1 does not."""
    rank, _ = start(args, PATIENCE)
    if rank == 0 or args.fixed:
        dist.new_group([0, 1], timeout=PATIENCE)
    total = torch.zeros(1)
    dist.all_reduce(total)
    end(rank)


@way
def early_stop(args):
    """Rank 1 stops when its own loss is small enough."""
    rank, _ = start(args, PATIENCE)
    model = model_of()
    optimizer = SGD(model.parameters(), 0.01)
    for step in range(STEPS):
        loss = torch.tensor(train_step(model, optimizer, torch.randn(8, 64)))
        small = torch.tensor(float(step == 4 and rank == 1))
        if args.fixed:
            dist.broadcast(small, src=1)  # one decision for all
        if small:
            emit(event="stop", rank=rank, step=step, train_loss=loss.item())
            break
    if args.fixed:
        end(rank)
    os._exit(0)


@way
def long_evaluation(args):
    """Rank 0 evaluates for longer than the others wait."""
    rank, _ = start(args, PATIENCE)
    train(model_of(), random_batches())
    if rank == 0:
        evaluate(1 if args.fixed else 3 * PATIENCE.total_seconds())
    dist.barrier()
    end(rank)


def evaluate(seconds: float) -> None:
    """Stand for an evaluation that takes so long."""
    time.sleep(seconds)


# They do not meet, or a rank fails


@way
def rank_dies(args):
    """Rank 1 is killed in the middle of training, as Linux does when memory runs out."""
    rank, _ = start(args)
    model = model_of()
    optimizer = SGD(model.parameters(), 0.01)
    # torchrun counts how often it has started the ranks (--max-restarts); mpirun never restarts.
    restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    for step in range(1, STEPS + 1):
        if step == 5 and rank == 1 and restarts == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        train_step(model, optimizer, torch.randn(8, 64))
    end(rank, restarts=restarts)


@way
def port_taken(args):
    """Another process listens where the ranks want to meet."""
    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    taken = socket.socket()
    if rank == 0 and not args.fixed:
        taken.bind(("", int(os.environ["MASTER_PORT"])))
        taken.listen()
    rank, _ = start(args, PATIENCE)
    end(rank)


@way
def missing_rank(args):
    """WORLD_SIZE is larger than the number of ranks that were started."""
    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2" if args.fixed else "3"}
    dist.init_process_group("gloo", timeout=PATIENCE)
    end(rank)


@way
def wrong_label(args):
    """Rank 1's part of the data has a label that the model does not know."""
    rank, _ = start(args, PATIENCE)
    model = model_of()
    labels = torch.full((8,), 64 if rank == 1 and not args.fixed else 63)
    for _ in range(STEPS):
        cross_entropy(model(torch.randn(8, 64)), labels).backward()
    end(rank)


@way
def unused_parameters(args):
    """A layer is not used in the loss."""
    rank, _ = start(args, PATIENCE)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.Linear(64, 64), nn.Linear(64, 64)

        def forward(self, batch):
            return self.used(batch)

    train(DistributedDataParallel(Model(), find_unused_parameters=args.fixed), random_batches())
    end(rank)


class Rows(Dataset):
    """Rows of numbers. seconds: to load one. fatal: that row kills the process that loads it."""

    def __init__(self, rows: int, width: int = 64, seconds: float = 0, fatal: int = -1):
        self.rows, self.width, self.seconds, self.fatal = rows, width, seconds, fatal

    def __len__(self):
        return self.rows

    def __getitem__(self, row: int):
        if self.seconds:
            time.sleep(self.seconds)
        if row == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.full((self.width,), row % 7 / 7)


@way
def dead_worker(args):
    """A process that loads data for rank 1 is killed."""
    rank, _ = start(args, PATIENCE)
    fatal = 40 if rank == 1 and not args.fixed else -1
    train(model_of(), DataLoader(Rows(64, fatal=fatal), 8, num_workers=1))
    end(rank)


@way
def out_of_memory(args):
    """A list holds every step's activations; the rank may have 2 GiB."""
    rank, _ = start(args, PATIENCE)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + (2 << 30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    history = []
    for _ in range(STEPS):
        activations = torch.zeros(128 << 20)  # 512 MiB
        history.append(activations.sum() if args.fixed else activations)
        total = torch.zeros(1)
        dist.all_reduce(total)
    end(rank)


@way
def file_not_ready(args):
    """Rank 0 prepares a file; the others do not wait for it."""
    rank, _ = start(args, PATIENCE)
    path = Path(args.save_to) / "vocabulary.txt"
    if rank == 0:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        time.sleep(0.5)
        path.write_text("a b c")
    if args.fixed:
        dist.barrier()
    words = path.read_text().split() if rank or args.fixed else []
    end(rank, words=len(words))


@way
def ranks_overwrite(args):
    """Every rank saves its checkpoint to the same file, and reads it back."""
    rank, _ = start(args, PATIENCE)
    model, path = nn.Linear(64, 2000), Path(args.save_to) / "checkpoint.pt"
    path.parent.mkdir(parents=True, exist_ok=True)
    for save in range(SAVES):
        state = {"rank": rank, "save": save, "model": model.state_dict()}
        if not args.fixed:
            torch.save(state, path)
        elif rank == 0:
            partial = path.with_suffix(".partial")
            torch.save(state, partial)
            partial.replace(path)  # at once: nobody ever sees half a file
        if args.fixed:
            dist.barrier()  # rank 0 has written
        torch.load(path, weights_only=True)
        dist.barrier()  # all save at the same time
    end(rank)


@way
def missing_library(args):
    """The script imports a package that is not installed here."""
    rank, _ = start(args, PATIENCE)
    if not args.fixed:
        import package_of_the_other_image  # type: ignore[import-not-found]  # noqa: F401
    end(rank)


@way
def other_world_size(args):
    """Each rank saved its part of a weight; there were four ranks, and now there are two."""
    rank, world_size = start(args, PATIENCE)
    model = nn.Linear(64, 64 // world_size)  # this rank's part
    saved = nn.Linear(64, 64 // (world_size if args.fixed else 4)).state_dict()
    model.load_state_dict(saved)
    end(rank)


# No error, and wrong


@way
def nan_on_one_rank(args):
    """A batch of rank 1 is empty, and the mean of nothing is no number."""
    rank, _ = start(args, PATIENCE)
    model, empty = model_of(), rank == 1 and not args.fixed
    optimizer = SGD(model.parameters(), 0.01)
    for step in range(STEPS):
        loss = train_step(model, optimizer, torch.randn(0 if step == 4 and empty else 8, 64))
        emit(event="step", rank=rank, step=step, train_loss=loss)
        time.sleep(0.05 * (1 - rank))  # so that the log has the lines of a step in one order
    end(rank)


@way
def forgotten_broadcast(args):
    """The ranks average their gradients, as Horovod and DDP do, and began with other weights."""
    rank, world_size = start(args)
    images, labels = map(torch.from_numpy, load_channel(args.training))
    torch.manual_seed(args.seed + rank)  # as people do it, so that ranks augment differently
    model = Classifier(tuple(images.shape[1:]), args.hidden_units)
    if args.fixed:
        for parameter in model.parameters():
            dist.broadcast(parameter.data, src=0)
    optimizer, steps = SGD(model.parameters(), args.learning_rate), 20

    evidence = Evidence(rank, weights_of(model), optimizer_variables=0)
    for step in range(steps):
        batch = slice(step * args.global_batch_size, (step + 1) * args.global_batch_size)
        pixels, answers = (part[batch][rank::world_size] for part in (images, labels))
        loss = cross_entropy(model(pixels), answers)
        optimizer.zero_grad()
        loss.backward()
        for gradient in [weight.grad for weight in model.parameters() if weight.grad is not None]:
            dist.all_reduce(gradient)
            gradient /= world_size
        optimizer.step()
        evidence.step(pixels, lambda: weights_of(model), optimizer_variables=0)
        if step in (0, steps - 1):
            emit(event="step", rank=rank, step=step + 1, train_loss=round(loss.item(), 4))
    evidence.show(weights_of(model))
    end(rank)


@way
def forgotten_set_epoch(args):
    """The sampler is not told of the epoch, and shuffles every epoch alike."""
    rank, _ = start(args)
    data = TensorDataset(torch.randn(512, 64))
    sampler: DistributedSampler = DistributedSampler(data)
    loader, model = DataLoader(data, 32, sampler=sampler), model_of()
    optimizer = SGD(model.parameters(), 0.01)
    orders: list[str] = []
    for epoch in range(2):
        if args.fixed:
            sampler.set_epoch(epoch)
        order = hashlib.sha256()
        for (batch,) in loader:
            train_step(model, optimizer, batch)
            order.update(batch.numpy().tobytes())
        orders.append(order.hexdigest()[:16])
    emit(event="orders", rank=rank, images_in_order=orders)
    end(rank)


@way
def lr_not_scaled(args):
    """More ranks take a larger global batch, and the learning rate of one rank."""
    rank, world_size = start(args)
    dataset = TensorDataset(*map(torch.from_numpy, load_channel(args.training)))
    sampler: DistributedSampler = DistributedSampler(dataset, seed=args.seed, drop_last=True)
    loader = DataLoader(dataset, 16, sampler=sampler, drop_last=True)  # of every rank
    model = DistributedDataParallel(Classifier(tuple(dataset[0][0].shape), args.hidden_units))
    learning_rate = args.learning_rate * world_size if args.fixed else args.learning_rate
    optimizer = SGD(model.parameters(), learning_rate)
    for epoch in range(1, args.epochs + 1):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            cross_entropy(model(images), labels).backward()
            optimizer.step()
        # The loss of all images with the epoch's last weights: alike for any number of ranks.
        with torch.no_grad():
            whole = cross_entropy(model.module(dataset.tensors[0]), dataset.tensors[1]).item()
        whole = round(all_reduce_mean(whole), 4)
        if rank == 0:
            record = {"epoch": epoch, "learning_rate": learning_rate, "steps": len(loader)}
            emit(event="loss", ranks=world_size, **record, train_loss=whole)
    end(rank)


@way
def forgotten_average(args):
    """Nobody averages the gradients."""
    rank, _ = start(args, PATIENCE)
    torch.manual_seed(0)
    model = nn.Linear(64, 64)
    optimizer = SGD(model.parameters(), 0.01)
    torch.manual_seed(rank)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(torch.randn(8, 64)).square().mean().backward()
        for parameter in model.parameters() if args.fixed else ():
            dist.all_reduce(parameter.grad)
        optimizer.step()
    end(rank)


@way
def forgotten_sampler(args):
    """Every rank's loader reads all of the data."""
    rank, _ = start(args, PATIENCE)
    data = TensorDataset(torch.randn(128, 64))
    sampler: DistributedSampler | None = DistributedSampler(data) if args.fixed else None
    loader = DataLoader(data, 8, shuffle=sampler is None, sampler=sampler)
    model = model_of()
    train(model, (batch for (batch,) in loader))
    end(rank)


@way
def batch_norm(args):
    """Batch norm over the two examples of each rank."""
    rank, _ = start(args, PATIENCE)
    data = TensorDataset(torch.randn(64, 64))
    loader = DataLoader(data, 2, sampler=DistributedSampler(data))
    norm = nn.LayerNorm(64) if args.fixed else nn.BatchNorm1d(64)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), norm))
    train(model, (batch for (batch,) in loader))
    end(rank)


# Slow


@way
def straggler(args):
    """Rank 1 does something that takes as long as the step itself."""
    rank, _ = start(args)
    model = model_of(256)
    optimizer = SGD(model.parameters(), 0.01)
    for _ in range(SLOW_STEPS):
        train_step(model, optimizer, torch.randn(64, 256))
        if rank == 1 and not args.fixed:
            write_log()
    end(rank)


def write_log() -> None:
    """Stand for what only one rank does: a log to a slow disk."""
    time.sleep(0.04)


@way
def tiny_buckets(args):
    """Each small tensor goes in an all-reduce of its own."""
    rank, _ = start(args)
    layers = 60
    model = model_of(64, layers, bucket_cap_mb=25 if args.fixed else 0.001)
    train(model, random_batches(SLOW_STEPS))
    end(rank)


@way
def slow_input(args):
    """Each rank loads its batches while it should compute."""
    rank, _ = start(args)
    model = model_of(64)
    rows = Rows(8 * SLOW_STEPS, seconds=0 if args.fixed else 0.005)
    for _ in range(2):
        train(model, DataLoader(rows, 8, sampler=DistributedSampler(rows)))
    end(rank)


@way
def too_many_threads(args):
    """Each rank computes with more threads than there are cores for it."""
    rank, world_size = start(args)
    cores = os.cpu_count() or 1
    torch.set_num_threads(max(cores // world_size, 1) if args.fixed else 4 * cores)
    train(model_of(512, 4), random_batches(SLOW_STEPS, 256, 512))
    end(rank)
