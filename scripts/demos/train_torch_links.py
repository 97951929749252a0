"""Train with DistributedDataParallel, and choose how gradients travel between the ranks.

    torchrun --standalone --nproc_per_node 4 scripts/demos/train_torch_links.py --all-reduce fp16
    mpirun -np 4 python scripts/demos/train_torch_links.py --bucket-megabytes 1

SageMaker: entry_point="train_torch_links.py", source_dir="scripts/demos", distribution={"mpi":
{"enabled": True, "processes_per_host": 2}}. It is worth while with two instances or more, and with
a model whose gradients are large: --hidden-units 4096 has 2.3 MB of them, the default 0.06 MB.
"""

from itertools import islice

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from common.arguments import local_batch_size, parser_for
from common.data import epochs_and_steps, load_channel
from common.errors import run_main
from common.hooks_torch import add_flags, parallel, register
from common.model_torch import Classifier, accuracy, prepare, save_model, weights_of
from common.ranks_torch import all_reduce_mean, cleanup, init_distributed
from common.report import Report, report_weights


def main() -> None:
    """Read the arguments, train, evaluate after each epoch, save the model."""
    parser = parser_for(__file__, __doc__)
    add_flags(parser)  # --all-reduce, --bucket-megabytes, PowerSGD's
    args = parser.parse_args()
    local_rank, ranks_here = init_distributed()
    rank, world_size = dist.get_rank(), dist.get_world_size()
    device = prepare(args, local_rank, ranks_here)
    images, labels = load_channel(args.training)
    test = load_channel(args.test, images)

    dataset = TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))
    local_batch = local_batch_size(args.global_batch_size, world_size)
    sampler: DistributedSampler = DistributedSampler(dataset, seed=args.seed, drop_last=True)
    loader = DataLoader(dataset, local_batch, sampler=sampler, drop_last=True)

    model = Classifier(images.shape[1:], args.hidden_units).to(device)
    # Of gloo's two threads each bucket's PowerSGD hook keeps one, waiting for an all-reduce that
    # needs the other: two buckets at a time wait for ever. So all gradients go into one.
    megabytes = 1e6 if args.all_reduce == "powersgd" else args.bucket_megabytes or None
    parallel_model = parallel(model, megabytes)
    register(parallel_model, args)  # the communication hook
    optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)

    report = Report(args, weights_of(model), rank, world_size, all_reduce_mean)
    for epoch, steps in epochs_and_steps(args, len(labels)):
        sampler.set_epoch(epoch - 1)  # from 0, as in scripts/train
        for batch_images, batch_labels in islice(loader, steps):
            logits = parallel_model(batch_images.to(device))
            loss = cross_entropy(logits, batch_labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            report.step(loss.detach())
        report.end_epoch(epoch, lambda: accuracy(model, *test), steps=steps)

    report_weights(weights_of(model), rank)
    if rank == 0:
        save_model(model, args.save_to, images.shape[1:], args.hidden_units)
    cleanup()


if __name__ == "__main__":
    run_main(main)
