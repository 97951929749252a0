"""The nine steps of train_tf_horovod_steps.py in PyTorch, each with torch.distributed by hand.

    mpirun -np 2 python scripts/demos/train_torch_steps.py --max-steps 10
    python scripts/demos/train_torch_steps.py

Lesson 04 runs it where Horovod is not installed. Each line that ends in STEP n belongs to step
n; without all of them this is a one-process script. DistributedDataParallel (see
train_torch_ddp.py) does steps 4 and 5 by itself, and faster. There are no checkpoints: what this
script is for is its evidence, which is of all steps from the first.
"""

import contextlib
import os
from itertools import islice

import torch
import torch.distributed as dist  # STEP 1
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from common.arguments import local_batch_size, parser_for
from common.data import epochs_and_steps, load_channel
from common.errors import run_main
from common.evidence import Evidence
from common.model_torch import Classifier, accuracy, prepare, save_model, weights_of
from common.ranks_torch import all_reduce_mean, cleanup, init_distributed  # STEP 1
from common.report import Report, report_weights


def warmed_up(step: int, scaled: float, size: int, warmup_steps: int) -> float:  # STEP 8
    """Return the learning rate of a step, from 1: near one rank's, later `scaled`."""  # STEP 8
    single = scaled / size  # STEP 8
    return single + (scaled - single) * min(1.0, step / max(1, warmup_steps))  # STEP 8


def shuffled(seed: int, examples: int) -> list[int]:
    """Return the order of the examples, the same on every rank."""
    return torch.randperm(examples, generator=torch.Generator().manual_seed(seed)).tolist()


def tensors_of(optimizer) -> list[torch.Tensor]:
    """Return the optimizer's own tensors: none before its first step."""
    values = [value for state in optimizer.state.values() for value in state.values()]
    return [tensor for tensor in values if isinstance(tensor, torch.Tensor)]


def main() -> None:
    """Read the arguments, train, evaluate after each epoch, save the model."""
    parser = parser_for(__file__, __doc__)
    parser.add_argument("--warmup-steps", type=int, default=20, help="0: the full rate at once")
    parser.add_argument("--no-save", action="store_true", help="for runs whose model nobody needs")
    # The variable in which Horovod is told its Timeline's file: one command suits both scripts.
    timeline = os.environ.get("HOROVOD_TIMELINE")
    parser.add_argument("--trace", default=timeline, help="file for rank 0's trace, Chrome's form")
    args = parser.parse_args()
    rank, size, local_rank, local_size, average = 0, 1, 0, 1, float
    places = init_distributed()  # STEP 1
    rank, size = dist.get_rank(), dist.get_world_size()  # STEP 1
    local_rank, local_size = places  # STEP 2
    average = all_reduce_mean  # STEP 9
    device = prepare(args, local_rank, local_size)  # this rank's own GPU, where there is one
    args.global_batch_size *= size  # STEP 3
    args.learning_rate *= size  # STEP 3

    images, labels = load_channel(args.training)
    test = load_channel(args.test, images)
    dataset = TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))
    batch = local_batch_size(args.global_batch_size, size)

    # Each rank its own random numbers, as dropout and augmentation need. Also its own weights!
    torch.manual_seed(args.seed + rank)
    model = Classifier(images.shape[1:], args.hidden_units).to(device)
    optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)
    report = Report(args, weights_of(model), rank, size, average)
    evidence = Evidence(rank, weights_of(model), len(tensors_of(optimizer)))
    trace = torch.profiler.profile() if args.trace else contextlib.nullcontext()
    step = 0
    with trace:
        for epoch, steps in epochs_and_steps(args, len(labels)):
            order = shuffled(args.seed + epoch, len(labels))
            order = order[rank::size]  # STEP 7
            loader = DataLoader(dataset, batch, sampler=order, drop_last=True)
            for batch_images, batch_labels in islice(loader, steps):
                step += 1
                rate = warmed_up(step, args.learning_rate, size, args.warmup_steps)  # STEP 8
                optimizer.param_groups[0]["lr"] = rate  # STEP 8
                loss = cross_entropy(model(batch_images.to(device)), batch_labels.to(device))
                optimizer.zero_grad()
                loss.backward()
                for parameter in model.parameters():  # STEP 4
                    dist.all_reduce(parameter.grad)  # STEP 4
                    parameter.grad /= size  # STEP 4
                optimizer.step()
                if step == 1:  # STEP 5
                    for value in [*model.state_dict().values(), *tensors_of(optimizer)]:  # STEP 5
                        dist.broadcast(value, src=0)  # STEP 5
                report.step(loss.detach())
                evidence.step(batch_images, lambda: weights_of(model), len(tensors_of(optimizer)))
            report.end_epoch(epoch, evaluate=lambda: accuracy(model, *test))
    if args.trace and rank == 0:
        trace.export_chrome_trace(args.trace)
    evidence.show(weights_of(model))
    report_weights(weights_of(model), rank)
    cleanup()  # STEP 1
    if rank != 0:  # STEP 6
        return  # STEP 6
    if not args.no_save:
        save_model(model, args.save_to, images.shape[1:], args.hidden_units)


if __name__ == "__main__":
    run_main(main)
