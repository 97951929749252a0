"""Train as train_torch_ddp.py does, and choose how gradients travel between the ranks.

    torchrun --standalone --nproc_per_node 4 scripts/train_torch_links.py --all-reduce two_tier
    mpirun -np 4 python scripts/train_torch_links.py --all-reduce fp16 --bucket-megabytes 1

SageMaker: entry_point="train_torch_links.py", source_dir="scripts", distribution={"mpi":
{"enabled": True, "processes_per_host": 2}}; with --backend smddp instead {"smdistributed":
{"dataparallel": {"enabled": True}}}. It is worth while with two instances or more, and with a
model whose gradients are large: --hidden-units 4096 has 2.3 MB of them, the default 0.06 MB.
Lines marked NEW HERE are what train_torch_ddp.py doesn't have. A checkpoint holds what all ranks
share: PowerSGD begins anew after one, without its memory of each rank's errors.
"""

import torch
import torch.distributed as dist  # NEW:
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel  # NEW:
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset  # NEW: the sampler

from common.arguments import add_flag, local_batch_size, parser_for  # NEW HERE: add_flag
from common.checkpoint_torch import Checkpoints
from common.data import epochs_and_steps, load_channel
from common.errors import run_main
from common.hooks_torch import add_flags, register  # NEW HERE:
from common.link_bytes import LinkBytes  # NEW HERE:
from common.model_torch import Classifier, accuracy, prepare, save_model, weights_of
from common.ranks_torch import join_ranks, leave_ranks, mean_over_ranks  # NEW:
from common.report import Report, report_weights


def main() -> None:
    """Read the arguments, train, evaluate after each epoch, save the model."""
    parser = parser_for(__file__, __doc__)  # NEW HERE:
    add_flags(parser)  # NEW HERE: --all-reduce, --bucket-megabytes, PowerSGD's
    add_flag(parser, "--backend", choices=["gloo", "smddp"])  # NEW HERE:
    args = parser.parse_args()  # NEW HERE:
    local_rank, ranks_here = join_ranks(args.backend)  # NEW HERE: args.backend
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
    bucket = args.bucket_megabytes  # NEW HERE:
    parallel_model = DistributedDataParallel(model, bucket_cap_mb=bucket)  # NEW HERE: bucket
    register(parallel_model, args)  # NEW HERE: the communication hook
    optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)

    report = Report(args, weights_of(model), rank, world_size, mean_over_ranks)  # NEW: the ranks
    kept = Checkpoints(args, parallel_model, optimizer, report)  # NEW: the wrapped model
    sent = LinkBytes()  # NEW HERE: what this instance sends
    for epoch, steps in epochs_and_steps(args, len(labels)):
        sampler.set_epoch(epoch)  # NEW: without it every epoch has the same order
        for batch_images, batch_labels in kept.batches(loader, epoch, steps):
            logits = parallel_model(batch_images.to(device))  # NEW: the wrapped model
            loss = cross_entropy(logits, batch_labels.to(device))  # NEW: logits
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            report.step(loss.detach())
        more = {"steps": steps, "link_bytes": sent.since_last()}  # NEW HERE:
        report.end_epoch(epoch, lambda: accuracy(model, *test), **more)  # NEW HERE: more

    report_weights(args, weights_of(model), rank)  # NEW: rank
    if rank == 0:  # NEW: one rank writes
        save_model(model, args.save_to, images.shape[1:], args.hidden_units)  # NEW: indented
    leave_ranks()  # NEW: together


if __name__ == "__main__":
    run_main(main)
