"""Train with the weights divided among the ranks (fully_shard, FSDP2): each holds 1/world_size.

    torchrun --standalone --nproc_per_node 2 train_torch_fsdp.py --model deep --learning-rate 0.01

For a model that does not fit on one GPU: weights, gradients and momentum are sharded, and the
weights of a layer are together only while it computes. Needs PyTorch 2.6 or later.
SageMaker: distribution={"torch_distributed": {"enabled": True}}, or {"mpi": {"enabled": True}}.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint.state_dict as sharded
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def fail(message):
    """End with one sentence: rank 0's, for when it ends, the launcher ends the others."""
    rank = os.environ.get("RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
    time.sleep(0 if rank == "0" else 10)  # then rank 0 has nothing to complain about
    sys.exit(f"error: {message}")


def parse_args():
    """Read the flags. SageMaker passes hyperparameters as flags, and its folders as SM_*."""
    env = os.environ.get
    kept = "/opt/ml/checkpoints" if os.path.isdir("/opt/ml/checkpoints") else ""
    defaults = {
        "epochs": 20,
        "global_batch_size": 64,  # examples in a step, over all ranks
        "learning_rate": 0.05,
        "seed": 0,
        "max_steps": 0,  # 0: no limit
        "log_every": 10,  # steps; 0: only at the end of each epoch
        "model": "small",  # or deep, which wants a learning rate of 0.01
        "hidden_units": 64,  # of the small model
        "threads_per_rank": 0,  # 0: this machine's cores, divided among its ranks
        "training": env("SM_CHANNEL_TRAINING", "data/digits/training"),
        "test": env("SM_CHANNEL_TEST", "data/digits/test"),
        "save_to": env("SM_MODEL_DIR", "model"),
        "checkpoint_dir": env("SM_CHECKPOINT_DIR", kept),  # "": no checkpoints
        "checkpoint_every": 0,  # steps; 0: at the end of each epoch
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.error = fail
    for name, default in defaults.items():
        choices = ["small", "deep"] if name == "model" else None
        spellings = {f"--{name}", f"--{name.replace('_', '-')}"}
        parser.add_argument(*spellings, type=type(default), default=default, choices=choices)
    args = parser.parse_args()
    for name, value in vars(args).items():
        may_be_0 = name not in ("epochs", "global_batch_size", "learning_rate", "hidden_units")
        if not (isinstance(value, str) or 0 < value < float("inf") or (value == 0 and may_be_0)):
            fail(f"--{name} {value}: expected a number above 0")
    return args


def try_folders(*folders):
    """Fail now, and not after the training, where one can't be written."""
    for folder in filter(None, folders):
        try:
            os.makedirs(folder, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            fail(f"can't write to {folder} ({error}): choose --save-to and --checkpoint-dir")


def emit(event, **record):
    """Print one JSON line with one write, so that the lines of several ranks stay whole."""
    if dist.get_rank() == 0 or event == "weights":
        print(json.dumps({"event": event, **record}) + "\n", end="", flush=True)


def join_ranks():
    """Meet the other ranks; return this rank's device: a GPU of its own, or the CPU."""
    env = os.environ  # torchrun sets RANK, ...; mpirun uses other names; python alone sets none
    by_torchrun = "RANK" in env
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        of_mpirun = env.get("OMPI_COMM_WORLD_" + name.replace("WORLD_", ""))
        env.setdefault(name, of_mpirun or ("1" if "SIZE" in name else "0"))
    try:
        world_size, ranks_here = int(env["WORLD_SIZE"]), int(env["LOCAL_WORLD_SIZE"])
        place = {"rank": int(env["RANK"]), "world_size": world_size}
        local_rank = int(env["LOCAL_RANK"])
        hosts = json.loads(env.get("SM_HOSTS", "[]")) if world_size > ranks_here else []
    except ValueError as error:
        sys.exit(f"error: RANK, LOCAL_RANK, a WORLD_SIZE or SM_HOSTS can't be read: {error}")
    if hosts and not by_torchrun:  # mpirun: each host may have inherited another address
        env["MASTER_ADDR"], env["MASTER_PORT"] = hosts[0], "29500"
    env.setdefault("MASTER_ADDR", "127.0.0.1")  # where the ranks find each other
    env.setdefault("MASTER_PORT", "29500" if world_size > 1 else "0")
    torch.set_num_threads(max(1, os.cpu_count() // ranks_here))
    own_gpu = torch.cuda.device_count() >= ranks_here  # each rank must see all GPUs of its host
    if own_gpu:  # else broadcast_object_list, barriers and FSDP of all ranks here take GPU 0
        torch.cuda.set_device(local_rank)
    if env.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        # With --max-restarts torchrun's store still has the addresses of the ranks that have ended.
        store = dist.TCPStore(env["MASTER_ADDR"], int(env["MASTER_PORT"]), is_master=False)
        place["store"] = dist.PrefixStore(env["TORCHELASTIC_RESTART_COUNT"], store)
    dist.init_process_group("nccl" if own_gpu else "gloo", **place)
    return torch.device("cuda", local_rank) if own_gpu else torch.device("cpu")


def leave_ranks():
    """End this process here: gloo can hang while Python ends (seen with PyTorch 2.2)."""
    dist.destroy_process_group()
    if __name__ == "__main__":  # a program that has imported this one goes on
        if mpi := sys.modules.get("mpi4py.MPI"):  # SageMaker: mpirun python -m mpi4py FILE
            mpi.Finalize()
        os._exit(0)


def mean_over_ranks(value):
    """Return the mean of a tensor over all ranks, as a float. Every rank must call it."""
    total = value.detach().clone()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def load(folder):
    """Return a channel's images, uint8 (n, height, width, channels), and labels, int64 (n,)."""
    try:
        parts = [np.load(path) for path in sorted(Path(folder).glob("part-*.npz"))]
        assert parts, "no part-*.npz in it"
        images, labels = (np.concatenate([p[key] for p in parts]) for key in ("images", "labels"))
        assert images.dtype == np.uint8 and images.ndim == 4 and min(images.shape[1:3]) >= 4
        assert labels.shape == images.shape[:1] and 0 <= labels.min() <= labels.max() <= 9
    except Exception as error:  # no files, damaged files, or files of something else
        fail(
            f"{folder} can't be used ({str(error) or 'other arrays'}). Expected: part-*.npz with "
            "images, uint8 (n, height, width, channels), 4 x 4 pixels or more, and labels (n,), 0 "
            "to 9. Point --training and --test at such folders; on SageMaker, name the channels so "
            "(the workshop's own data: `python -m data_prep digits`)"
        )
    return torch.from_numpy(images), torch.from_numpy(labels)


class Residual(nn.Sequential):
    """Layers whose output is added to their input."""

    def forward(self, x):
        return x + super().forward(x)


class Classifier(nn.Sequential):
    """Pixels, 0 to 255, (n, height, width, channels), to logits (n, 10).

    No batch norm, no dropout: with them N ranks would not compute what one process computes.
    """

    def __init__(self, model, image_shape, hidden_units):
        def conv(inputs, outputs, stride=1):
            return nn.Conv2d(inputs, outputs, 3, stride, padding=1)

        height, width, channels = image_shape
        if model == "deep":  # a ResNet of 20 convolutions: 56 MB in 84 tensors
            layers = [conv(channels, 64), nn.GroupNorm(8, 64)]
            for inputs, outputs in [(64, 64), (64, 128), (128, 256), (256, 512)]:
                if inputs < outputs:
                    layers += [conv(inputs, outputs, stride=2), nn.GroupNorm(8, outputs)]
                for _ in range(2):
                    first = [nn.GroupNorm(8, outputs), nn.ReLU(), conv(outputs, outputs)]
                    second = [nn.GroupNorm(8, outputs), nn.ReLU(), conv(outputs, outputs)]
                    nn.init.zeros_(second[-1].weight)  # at first it adds nothing: steadier
                    layers.append(Residual(*first, *second))
            layers += [nn.GroupNorm(8, 512), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
            layers += [nn.Linear(512, 10)]
        else:
            layers = [conv(channels, 16), nn.ReLU(), nn.MaxPool2d(2)]
            layers += [conv(16, 32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
            layers += [nn.Linear(32 * (height // 4) * (width // 4), hidden_units)]
            layers += [nn.ReLU(), nn.Linear(hidden_units, 10)]
        super().__init__(*layers)

    def forward(self, images):
        # The layout is named: else torch keeps the permuted strides, and DDP copies gradients.
        pixels = images.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format)
        return super().forward(pixels / 255)


@torch.no_grad()
def evaluate(model, images, labels, device):
    """Return the share of right answers, 0 to 1."""
    model.eval()  # batch norm and dropout, if there are any, work differently in training
    answers = [model(part.to(device)).argmax(1).cpu() for part in images.split(256)]
    model.train()
    return (torch.cat(answers) == labels).float().mean().item()


# Whole weights on rank 0, put together from the shards of all ranks: so all ranks must ask.
FULL = sharded.StateDictOptions(full_state_dict=True)


def save_checkpoint(folder, step, model, optimizer):
    """Write what `resume` reads. Renamed at the end: the file is there whole, or not at all.

    With dropout or augmentation add the random state; else a resumed run differs a little.
    """
    state = {"step": step, "model": sharded.get_model_state_dict(model, options=FULL)}
    state["optimizer"] = sharded.get_optimizer_state_dict(model, optimizer, options=FULL)
    if dist.get_rank() > 0:
        return
    torch.save(state, f"{folder}/partial")
    os.replace(f"{folder}/partial", f"{folder}/checkpoint.pt")


def resume(folder, model, optimizer):
    """Read the checkpoint into model and optimizer; return its step, 0 if there is none."""
    path, state = Path(folder, "checkpoint.pt"), None
    try:
        if folder and path.exists():
            state = torch.load(path, map_location="cpu", weights_only=True)
        states = [state]
        dist.broadcast_object_list(states)  # from rank 0: elsewhere the folder may be empty
        [state] = states
        if state is None:
            return 0
        sharded.set_model_state_dict(model, state["model"], options=FULL)
        sharded.set_optimizer_state_dict(model, optimizer, state["optimizer"], options=FULL)
        emit("resumed", step=state["step"])
        return state["step"]
    except Exception as error:  # damaged, of another model, or not readable
        fail(f"{path} can't be used ({repr(error)[:160]}). Move it away to start anew")


def save_model(args, weights, image_shape):
    """Write --save-to/model.pt, which inference.py reads: it has the Classifier, too."""
    about = {"model": args.model, "image_shape": image_shape, "hidden_units": args.hidden_units}
    torch.save(about | {"state_dict": weights}, f"{args.save_to}/model.pt")


def main():
    """Train, evaluate after each epoch, save the model."""
    args = parse_args()
    try_folders(args.save_to, args.checkpoint_dir)
    device = join_ranks()
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if args.threads_per_rank:
        torch.set_num_threads(args.threads_per_rank)
    torch.manual_seed(args.seed)

    (images, labels), test = load(args.training), load(args.test)
    if len(labels) < args.global_batch_size or args.global_batch_size % world_size:
        fail(
            f"--global-batch-size {args.global_batch_size}: expected a multiple of "
            f"{world_size} ranks, and at most the {len(labels)} examples"
        )
    # All in memory. For more data: a Dataset that reads (and augments) in __getitem__, num_workers.
    dataset = TensorDataset(images, labels)
    # All ranks shuffle alike; then rank r takes examples r, r + world_size, ...
    sampler = DistributedSampler(dataset, seed=args.seed, drop_last=True)
    local_batch_size = args.global_batch_size // world_size
    loader = DataLoader(dataset, local_batch_size, sampler=sampler, drop_last=True)

    image_shape = tuple(images.shape[1:])
    model = Classifier(args.model, image_shape, args.hidden_units).to(device)
    # Batch norm in a model would use each rank's own examples, and rank 0's averages be saved; on
    # GPUs nn.SyncBatchNorm.convert_sync_batchnorm(model) uses all ranks'. And dropout would drop
    # the same units on every rank, without this:
    torch.manual_seed(args.seed + rank)
    # Each rank keeps its shard of the weights. The same seed gave all ranks the same weights.
    mesh = init_device_mesh(device.type, (world_size,))
    for block in (m for m in model if isinstance(m, Residual)):
        fully_shard(block, mesh=mesh)  # its weights are gathered and freed together
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)
    step = resume(args.checkpoint_dir, model, optimizer)

    parameters = sum(p.numel() for p in model.parameters())
    sizes = {"parameters": parameters, "gradient_bytes": 4 * parameters}
    sizes |= {"device": str(device), "backend": dist.get_backend()}
    emit("start", world_size=world_size, local_batch_size=local_batch_size, **sizes, **vars(args))
    last = min(args.epochs * len(loader), args.max_steps or sys.maxsize)
    while step < last:
        epoch, done = divmod(step, len(loader))  # resumed inside an epoch: skip what is done
        sampler.set_epoch(epoch)  # without it every epoch has the same order
        losses = []
        for images, labels in islice(loader, done, last - epoch * len(loader)):
            loss = cross_entropy(model(images.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            losses.append(loss.detach())
            if len(losses) == 1:
                loss.item()  # waits for the GPU
                clock = time.perf_counter()  # an epoch's first step is left out of its speed
            if args.log_every and step % args.log_every == 0:
                emit("step", step=step, train_loss=mean_over_ranks(loss))
            due = args.checkpoint_dir and step % (args.checkpoint_every or len(loader)) == 0
            if due:
                save_checkpoint(args.checkpoint_dir, step, model, optimizer)
        record = {"train_loss": mean_over_ranks(torch.stack(losses).mean())}
        if timed := len(losses) - 1:
            record["step_seconds"] = (time.perf_counter() - clock) / timed
            record["samples_per_second"] = args.global_batch_size / record["step_seconds"]
        accuracy = evaluate(model, *test, device)  # every rank tests everything
        emit("epoch", epoch=epoch + 1, step=step, test_accuracy=accuracy, **record)

    weights = sharded.get_model_state_dict(model, options=FULL)
    weights = {name: value.cpu() for name, value in weights.items()}
    values = [weights[name].numpy().tobytes() for name, _ in model.named_parameters()]
    digest = hashlib.sha256(b"".join(values))  # not batch norm's averages: they differ by rank
    emit("weights", rank=rank, weights_sha256=digest.hexdigest())
    if rank == 0:
        save_model(args, weights, image_shape)
    leave_ranks()


if __name__ == "__main__":
    main()
