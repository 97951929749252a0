"""Train with DDP in bfloat16 (--bf16 1) and with accumulated gradients (--accumulate 4).

    torchrun --standalone --nproc_per_node 2 train_torch_ddp_options.py --bf16 1 --accumulate 4

It is train_torch_ddp.py, and as it there: the global batch is what one optimizer step sees. With
--accumulate k each rank works through its part in k micro-batches, for 1/k of the memory.
SageMaker: distribution={"torch_distributed": {"enabled": True}}, or {"mpi": {"enabled": True}}.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def parse_args():
    """Read the flags. SageMaker passes hyperparameters as flags, and its folders as SM_*."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    env, on_instance = os.environ.get, "/opt/ml/checkpoints"
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--global-batch-size", type=int, default=64, help="over all ranks")
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-steps", type=int, default=0, help="0: no limit")
    parser.add_argument("--log-every", type=int, default=10, help="steps; 0: only epochs")
    parser.add_argument("--model", choices=["small", "deep"], default="small")
    parser.add_argument("--hidden-units", type=int, default=64, help="of the small model")
    parser.add_argument("--threads-per-rank", type=int, default=0, help="0: cores / ranks here")
    parser.add_argument("--training", default=env("SM_CHANNEL_TRAINING", "data/digits/training"))
    parser.add_argument("--test", default=env("SM_CHANNEL_TEST", "data/digits/test"))
    parser.add_argument("--save-to", default=env("SM_MODEL_DIR", "model"))
    found = on_instance if os.path.isdir(on_instance) else ""
    parser.add_argument("--checkpoint-dir", default=env("SM_CHECKPOINT_DIR", found))
    parser.add_argument("--checkpoint-every", type=int, default=0, help="steps; 0: each epoch")
    parser.add_argument("--model-dir", help="ignored; the SDK's TensorFlow estimator sends it")
    parser.add_argument("--bf16", type=int, choices=[0, 1], default=0, help="1: autocast")
    parser.add_argument("--accumulate", type=int, default=1, help="micro-batches a step")
    # --max_steps is --max-steps: hyperparameters come in both spellings.
    words = [w.replace("_", "-") if w.startswith("--") and "=" not in w else w for w in sys.argv]
    args = parser.parse_args(words[1:])
    if min(args.epochs, args.global_batch_size, args.hidden_units) < 1 or args.learning_rate <= 0:
        parser.error("--epochs, --global-batch-size, --hidden-units, --learning-rate: above 0")
    return args


def emit(event, **record):
    """Print one JSON line with one write: lines of several ranks stay whole."""
    if event != "weights" and dist.get_rank() > 0:  # every rank has the same to say
        return
    sys.stdout.write(json.dumps({"event": event, **record}) + "\n")
    sys.stdout.flush()


def join_ranks(args):
    """Meet the other ranks; return this one's device: a GPU of its own, or a part of the CPU."""
    env = os.environ  # torchrun sets these; mpirun others; python none, and is rank 0 of 1
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        mpirun = env.get("OMPI_COMM_WORLD_" + name.replace("WORLD_", ""))
        env.setdefault(name, mpirun or ("1" if "SIZE" in name else "0"))
    local_rank, ranks_here = int(env["LOCAL_RANK"]), int(env["LOCAL_WORLD_SIZE"])
    hosts = json.loads(env.get("SM_HOSTS", "[]")) if int(env["WORLD_SIZE"]) > ranks_here else []
    env.setdefault("MASTER_ADDR", [*hosts, "127.0.0.1"][0])  # where rank 0 waits for the others
    env.setdefault("MASTER_PORT", "29500" if int(env["WORLD_SIZE"]) > 1 else "0")
    own_gpu = torch.cuda.device_count() >= ranks_here
    if own_gpu:
        torch.cuda.set_device(local_rank)
    torch.set_num_threads(args.threads_per_rank or max(1, os.cpu_count() // ranks_here))
    store, restarts = None, env.get("TORCHELASTIC_RESTART_COUNT", "0")
    if restarts != "0" and env.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        # torchrun's store still has the addresses of the ranks that ended: names beside those.
        store = dist.TCPStore(env["MASTER_ADDR"], int(env["MASTER_PORT"]), is_master=False)
        store = dist.PrefixStore(f"restart-{restarts}", store)
    place = {"rank": int(env["RANK"]), "world_size": int(env["WORLD_SIZE"]), "store": store}
    dist.init_process_group("nccl" if own_gpu else "gloo", **place)
    return torch.device("cuda", local_rank) if own_gpu else torch.device("cpu")


def mean_over_ranks(value):
    """Return the mean of a tensor over all ranks. Each rank must call it."""
    total = value.detach().clone()
    dist.all_reduce(total)
    return total / dist.get_world_size()


def load(folder):
    """Return a channel: images, uint8 (n, height, width, channels), and labels, int64 (n,)."""
    parts = [np.load(path) for path in sorted(Path(folder).glob("part-*.npz"))]
    if not parts:
        sys.exit(
            f"error: no part-*.npz in {folder}. Run `python -m data_prep digits`, or point "
            "--training and --test at folders with such files"
        )
    images, labels = (np.concatenate([p[name] for p in parts]) for name in ("images", "labels"))
    if images.ndim != 4 or images.dtype != np.uint8 or min(images.shape[1:3]) < 4:
        sys.exit(
            f"error: images in {folder} are {images.dtype} {images.shape}; expected uint8 "
            "(n, height, width, channels) of at least 4 x 4 pixels. Prepare the data again"
        )
    return torch.from_numpy(images), torch.from_numpy(labels)


def conv(inputs, outputs, size, stride):
    """Return a convolution, normalised by groups: batch norm would depend on the local batch."""
    convolution = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
    return [convolution, nn.GroupNorm(8, outputs)]


class Block(nn.Module):
    """ResNet's basic block: two convolutions and a shortcut around them."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        first, second = conv(inputs, outputs, 3, stride), conv(outputs, outputs, 3, 1)
        nn.init.zeros_(second[-1].weight)  # begins as its shortcut: else the loss rises at first
        self.body = nn.Sequential(*first, nn.ReLU(), *second)
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Sequential(*([] if same else conv(inputs, outputs, 1, stride)))

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


class Classifier(nn.Module):
    """Pixels, uint8 (n, height, width, channels), to logits (n, 10). `deep` is ResNet-18, 45 MB."""

    def __init__(self, model, image_shape, hidden_units):
        super().__init__()
        height, width, channels = image_shape
        if model == "deep":
            layers = [*conv(channels, 64, 3, 1), nn.ReLU()]
            for inputs, outputs in [(64, 64), (64, 128), (128, 256), (256, 512)]:
                stride = 1 if inputs == outputs else 2
                layers += [Block(inputs, outputs, stride), Block(outputs, outputs, 1)]
            layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)]
        else:
            layers = [nn.Conv2d(channels, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
            layers += [nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
            layers += [nn.Linear(32 * (height // 4) * (width // 4), hidden_units), nn.ReLU()]
            layers += [nn.Linear(hidden_units, 10)]
        self.layers = nn.Sequential(*layers)

    def forward(self, images):
        # The layout is named: else torch keeps the permuted strides, and DDP has to copy.
        pixels = images.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format)
        return self.layers(pixels / 255)


@torch.no_grad()
def evaluate(model, images, labels, device):
    """Return the share of right answers, 0 to 1."""
    parts = [model(part.to(device)).argmax(1).cpu() for part in images.split(256)]
    return (torch.cat(parts) == labels).float().mean().item()


def save_checkpoint(folder, step, model, optimizer):
    """Write what `resume` reads; keep the newest two. A file is there whole or not at all."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, Path(folder, "partial"))
    os.replace(Path(folder, "partial"), Path(folder, f"step-{step:09}.pt"))
    for old in sorted(Path(folder).glob("step-*.pt"))[:-2]:
        old.unlink()


def resume(folder, model, optimizer):
    """Read the newest checkpoint into model and optimizer; return its step, 0 if there is none."""
    newest = max(Path(folder).glob("step-*.pt"), default=None) if folder else None
    state = torch.load(newest, map_location="cpu", weights_only=True) if newest else None
    states = [state]
    dist.broadcast_object_list(states)  # rank 0's: on another machine the folder may be empty
    if not (state := states[0]):
        return 0
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])  # the momentum, and the learning rate
    emit("resumed", step=state["step"])
    return state["step"]


def save_model(args, model, image_shape):
    """Write --save-to/model.pt, which inference.py reads."""
    about = {"model": args.model, "image_shape": list(image_shape)}
    about |= {"hidden_units": args.hidden_units, "state_dict": model.cpu().state_dict()}
    Path(args.save_to).mkdir(parents=True, exist_ok=True)
    torch.save(about, Path(args.save_to, "model.pt"))


def main():
    """Train, evaluate after each epoch, save the model."""
    args = parse_args()
    device = join_ranks(args)
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(args.seed)
    images, labels = load(args.training)
    image_shape, test = images.shape[1:], load(args.test)

    dataset = TensorDataset(images, labels)
    # All ranks shuffle alike; then rank r takes examples r, r + world_size, ...
    sampler = DistributedSampler(dataset, seed=args.seed, drop_last=True)
    local_batch_size = args.global_batch_size // world_size
    if len(labels) < args.global_batch_size or args.global_batch_size % world_size:
        sys.exit(
            f"error: --global-batch-size {args.global_batch_size}; expected at most the "
            f"{len(labels)} examples, and a multiple of the {world_size} ranks"
        )
    if args.accumulate < 1 or local_batch_size % args.accumulate:
        sys.exit(f"error: --accumulate: expected a divisor of each rank's {local_batch_size}")
    loader = DataLoader(dataset, local_batch_size, sampler=sampler, drop_last=True)

    model = Classifier(args.model, image_shape, args.hidden_units).to(device)
    optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)
    # Copies rank 0's weights to all; then backward() averages the gradients of all ranks.
    parallel_model = DistributedDataParallel(model)
    # DDP packs gradients anew after its first step. Here, so that a resumed run adds them alike:
    parallel_model(images[:1].to(device)).sum().backward()
    step = resume(args.checkpoint_dir, model, optimizer)

    about = {"world_size": world_size, "global_batch_size": args.global_batch_size}
    about |= {"local_batch_size": local_batch_size, "learning_rate": args.learning_rate}
    parameters = sum(p.numel() for p in model.parameters())
    emit("start", **about, parameters=parameters, gradient_bytes=4 * parameters)

    last = min(args.epochs * len(loader), args.max_steps or args.epochs * len(loader))
    while step < last:
        epoch, done = divmod(step, len(loader))  # resumed: the epoch's first batches are done
        sampler.set_epoch(epoch)  # without it every epoch has the same order
        losses = []
        for images, labels in islice(loader, done, last - epoch * len(loader)):
            optimizer.zero_grad()
            loss, k = torch.zeros((), device=device), args.accumulate
            micro_batches = zip(images.to(device).chunk(k), labels.to(device).chunk(k), strict=True)
            for number, (images, labels) in enumerate(micro_batches, 1):
                # Gradients add up in .grad; only the last backward() sends them to other ranks.
                with nullcontext() if number == k else parallel_model.no_sync():
                    # Only forward() is in bfloat16: weights, gradients and optimizer stay float32.
                    with torch.autocast(device.type, torch.bfloat16, enabled=bool(args.bf16)):
                        part = cross_entropy(parallel_model(images), labels) / k
                    part.backward()
                loss += part.detach()
            optimizer.step()
            step += 1
            losses.append(loss.detach())
            if len(losses) == 1:
                loss.item()  # waits for the GPU
                clock = time.perf_counter()  # an epoch's first step is left out of its speed
            if args.log_every and step % args.log_every == 0:
                emit("step", step=step, train_loss=round(mean_over_ranks(loss).item(), 6))
            due = args.checkpoint_dir and step % (args.checkpoint_every or len(loader)) == 0
            if due and rank == 0:
                save_checkpoint(args.checkpoint_dir, step, model, optimizer)
        train_loss = mean_over_ranks(torch.stack(losses).mean()).item()
        seconds = (time.perf_counter() - clock) / (len(losses) - 1) if losses[1:] else None
        record = {"epoch": epoch + 1, "step": step, "train_loss": round(train_loss, 6)}
        record["test_accuracy"] = round(evaluate(model, *test, device), 6)
        record["samples_per_second"] = seconds and round(args.global_batch_size / seconds, 1)
        emit("epoch", **record, step_seconds=seconds and round(seconds, 6))

    weights = [value.cpu().numpy().tobytes() for value in model.state_dict().values()]
    emit("weights", rank=rank, weights_sha256=hashlib.sha256(b"".join(weights)).hexdigest())
    if rank == 0:
        save_model(args, model, image_shape)
    dist.barrier()  # nobody leaves while rank 0 still writes
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
