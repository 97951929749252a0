"""Train a small image classifier on several PyTorch processes (DistributedDataParallel).

    torchrun --standalone --nproc_per_node 2 scripts/train_torch_ddp.py
    mpirun -np 2 python scripts/train_torch_ddp.py
    python scripts/train_torch_ddp.py

SageMaker: entry_point="train_torch_ddp.py", source_dir="scripts",
distribution={"torch_distributed": {"enabled": True}}. Lines marked NEW are what train_torch.py
doesn't have.
"""

import torch
import torch.distributed as dist  # NEW:
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel  # NEW:
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset  # NEW: the sampler

from common.arguments import local_batch_size, parser_for  # NEW: local_batch_size
from common.checkpoint_torch import Checkpoints
from common.data import epochs_and_steps, load_channel
from common.errors import run_main
from common.model_torch import Classifier, accuracy, prepare, save_model, weights_of
from common.ranks_torch import join_ranks, leave_ranks, mean_over_ranks  # NEW:
from common.report import Report, report_weights


def main() -> None:
    """Read the arguments, train, evaluate after each epoch, save the model."""
    args = parser_for(__file__, __doc__).parse_args()
    local_rank, ranks_here = join_ranks()  # NEW: meet the other ranks
    rank, world_size = dist.get_rank(), dist.get_world_size()  # NEW:
    device = prepare(args, local_rank, ranks_here)  # NEW: share the machine's GPUs and cores
    images, labels = load_channel(args.training)
    test = load_channel(args.test, images)

    dataset = TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))
    local_batch = local_batch_size(args.global_batch_size, world_size)  # NEW:
    # NEW: all ranks shuffle alike, then rank r takes examples r, r + world_size, ...
    sampler = DistributedSampler(dataset, seed=args.seed, drop_last=True)  # NEW:
    loader = DataLoader(dataset, local_batch, sampler=sampler, drop_last=True)  # NEW: local_batch

    model = Classifier(images.shape[1:], args.hidden_units).to(device)
    # NEW: copies rank 0's weights to all; then backward() averages the gradients of all ranks.
    parallel_model = DistributedDataParallel(model)  # NEW:
    optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)

    report = Report(args, weights_of(model), rank, world_size, mean_over_ranks)  # NEW: the ranks
    kept = Checkpoints(args, parallel_model, optimizer, report)  # NEW: the wrapped model
    for epoch, steps in epochs_and_steps(args, len(labels)):
        sampler.set_epoch(epoch)  # NEW: without it every epoch has the same order
        for batch_images, batch_labels in kept.batches(loader, epoch, steps):
            logits = parallel_model(batch_images.to(device))  # NEW: the wrapped model
            loss = cross_entropy(logits, batch_labels.to(device))  # NEW: logits
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            report.step(loss.detach())
        report.end_epoch(epoch, evaluate=lambda: accuracy(model, *test))

    report_weights(args, weights_of(model), rank)  # NEW: rank
    if rank == 0:  # NEW: one rank writes
        save_model(model, args.save_to, images.shape[1:], args.hidden_units)  # NEW: indented
    leave_ranks()  # NEW: together


if __name__ == "__main__":
    run_main(main)
