"""Train with the weights divided among the ranks (fully_shard, FSDP2): each holds 1/world_size.

    torchrun --standalone --nproc_per_node 2 train_torch_fsdp.py --channels 256 --blocks 12

For a model that does not fit on one GPU: weights, gradients and momentum are sharded, and the
weights of a layer are together only while it computes. Needs PyTorch 2.6 or later.
SageMaker: distribution={"torch_distributed": {"enabled": True}} or {"mpi": {"enabled": True}}.
"""

import argparse
import hashlib
import json
import os
import sys
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


def parse_args():
    """Read the flags. SageMaker passes hyperparameters as flags, and its folders as SM_*."""
    env = os.environ.get
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--global-batch-size", type=int, default=64, help="over all ranks")
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-steps", type=int, default=0, help="0: no limit")
    parser.add_argument("--log-every", type=int, default=10, help="steps; 0: never")
    parser.add_argument("--hidden-units", type=int, default=64)
    parser.add_argument("--channels", type=int, default=32, help="of the second convolution")
    parser.add_argument("--blocks", type=int, default=0, help="residual; 12 of 256 channels: 57 MB")
    parser.add_argument("--threads-per-rank", type=int, default=1, help="CPU threads")
    parser.add_argument("--training", default=env("SM_CHANNEL_TRAINING", "data/digits/training"))
    parser.add_argument("--test", default=env("SM_CHANNEL_TEST", "data/digits/test"))
    parser.add_argument("--save-to", default=env("SM_MODEL_DIR", "model"))
    return parser.parse_args()


def emit(event, **record):
    """Print a JSON line with one write, so that the lines of several ranks stay whole."""
    print(json.dumps({"event": event, **record}) + "\n", end="", flush=True)


def init_distributed():
    """Join the other ranks; return this rank's device: a GPU of its own, or the CPU."""
    env = os.environ  # torchrun sets RANK, LOCAL_RANK, ...
    if "OMPI_COMM_WORLD_RANK" in env:  # mpirun has names of its own
        for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"):
            env[name.replace("SIZE", "WORLD_SIZE")] = env["OMPI_COMM_WORLD_" + name]
        several = env["WORLD_SIZE"] != env["LOCAL_WORLD_SIZE"]  # machines: meet on the first
        env["MASTER_ADDR"] = json.loads(env["SM_HOSTS"])[0] if several else "127.0.0.1"
        env["MASTER_PORT"] = "29500" if several else env.get("MASTER_PORT", "29500")
    device = torch.device("cpu")
    if torch.cuda.device_count() >= int(env["LOCAL_WORLD_SIZE"]):
        device = torch.device("cuda", int(env["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return device


def all_reduce_mean(value):
    """Return the mean of a tensor over all ranks, as a float. Every rank must call it."""
    total = value.detach().clone()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def load(folder):
    """Return a channel's images, uint8 (n, height, width, channels), and labels, int64 (n,)."""
    parts = [np.load(path) for path in sorted(Path(folder).glob("part-*.npz"))]
    assert parts, f"no part-*.npz in {folder}: `python -m data_prep digits` writes them"
    images, labels = (np.concatenate([p[key] for p in parts]) for key in ("images", "labels"))
    return torch.from_numpy(images), torch.from_numpy(labels)


class Residual(nn.Sequential):
    """Two convolutions whose output is added to their input. At first they add nothing."""

    def __init__(self, channels):
        first, second = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        nn.init.zeros_(second.weight)
        layers = [nn.GroupNorm(8, channels), nn.ReLU(), first]
        super().__init__(*layers, nn.GroupNorm(8, channels), nn.ReLU(), second)

    def forward(self, x):
        return x + super().forward(x)


class Classifier(nn.Sequential):
    """Pixels, 0 to 255, (n, height, width, channels), to logits (n, 10).

    No batch norm, no dropout: with them N ranks would not compute what one process computes.
    """

    def __init__(self, image_shape, hidden_units, channels=32, blocks=0):
        height, width, colours = image_shape
        layers = [nn.Conv2d(colours, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        layers += [nn.Conv2d(16, channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        layers += [*(Residual(channels) for _ in range(blocks)), nn.Flatten()]
        layers += [nn.Linear(channels * (height // 4) * (width // 4), hidden_units), nn.ReLU()]
        super().__init__(*layers, nn.Linear(hidden_units, 10))

    def forward(self, images):
        # The layout is named: else torch keeps the permuted strides, and DDP copies gradients.
        pixels = images.permute(0, 3, 1, 2).float(memory_format=torch.contiguous_format)
        return super().forward(pixels / 255)


@torch.no_grad()
def evaluate(model, device, images, labels):
    """Return the share of right answers, 0 to 1."""
    model.eval()
    answers = [model(part.to(device)).argmax(1).cpu() for part in images.split(256)]
    model.train()
    return (torch.cat(answers) == labels).float().mean().item()


def main():
    """Train, evaluate after each epoch, save the model."""
    args = parse_args()
    device = init_distributed()
    rank, world_size = dist.get_rank(), dist.get_world_size()
    report = emit if rank == 0 else lambda *_, **__: None
    torch.set_num_threads(args.threads_per_rank)
    torch.manual_seed(args.seed)

    (images, labels), test = load(args.training), load(args.test)
    if len(labels) < args.global_batch_size or args.global_batch_size % world_size:
        sys.exit(f"error: --global-batch-size: no multiple of {world_size} up to {len(labels)}")
    dataset = TensorDataset(images, labels)
    sampler: DistributedSampler = DistributedSampler(dataset, seed=args.seed, drop_last=True)
    local_batch_size = args.global_batch_size // world_size
    loader = DataLoader(dataset, local_batch_size, sampler=sampler, drop_last=True)

    about = {"image_shape": tuple(images.shape[1:]), "hidden_units": args.hidden_units}
    about |= {"channels": args.channels, "blocks": args.blocks}
    model = Classifier(**about).to(device)
    # Each rank keeps its shard of the weights. The same seed gave all ranks the same weights.
    mesh = init_device_mesh(device.type, (world_size,))
    for block in (m for m in model if isinstance(m, Residual)):
        fully_shard(block, mesh=mesh)  # its weights are gathered and freed together
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)
    step = 0

    parameters = sum(p.numel() for p in model.parameters())
    sizes = {"parameters": parameters, "gradient_bytes": 4 * parameters, "device": str(device)}
    report("start", world_size=world_size, local_batch_size=local_batch_size, **sizes, **vars(args))
    last = min(args.epochs * len(loader), args.max_steps or sys.maxsize)
    while step < last:
        epoch = step // len(loader)
        sampler.set_epoch(epoch)  # without it every epoch has the same order
        losses = []
        for images, labels in islice(loader, last - step):
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
                report("step", step=step, train_loss=all_reduce_mean(loss))
        record = {"train_loss": all_reduce_mean(torch.stack(losses).mean())}
        if timed := len(losses) - 1:
            record["step_seconds"] = (time.perf_counter() - clock) / timed
            record["samples_per_second"] = args.global_batch_size / record["step_seconds"]
        accuracy = evaluate(model, device, *test)
        report("epoch", epoch=epoch + 1, step=step, test_accuracy=accuracy, **record)

    # Whole weights, put together from the shards of all ranks: so all ranks must ask. Rank 0 alone
    # gets them, in CPU memory: without cpu_offload every rank, every GPU, would hold all of them.
    options = sharded.StateDictOptions(full_state_dict=True, cpu_offload=True)
    state = sharded.get_model_state_dict(model, options=options)
    if rank == 0:  # inference.py reads what it saves
        weights = b"".join(value.numpy().tobytes() for value in state.values())
        emit("weights", rank=rank, weights_sha256=hashlib.sha256(weights).hexdigest())
        os.makedirs(args.save_to, exist_ok=True)
        torch.save(about | {"state_dict": state}, f"{args.save_to}/model.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
