"""Train a small image classifier in one PyTorch process that uses all its GPUs (DataParallel).

    python scripts/train_torch_dp.py
    python scripts/train_torch_dp.py --cpu-replicas 2

One process, on one machine: torchrun and mpirun have no place here. With several GPUs each step
scatters the batch over them. With one GPU or none DataParallel only calls the model;
--cpu-replicas then shows the same steps with threads. Lines marked NEW are what train_torch.py
doesn't have. PyTorch recommends train_torch_ddp.py instead, on a single machine too.
"""

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from common.arguments import parser_for
from common.checkpoint_torch import Checkpoints
from common.data import epochs_and_steps, load_channel
from common.errors import run_main
from common.model_torch import Classifier, accuracy, prepare, save_model, weights_of
from common.report import Report, report_weights
from common.threads_torch import check_one_process, data_parallel  # NEW:


def main() -> None:
    """Read the arguments, train, evaluate after each epoch, save the model."""
    parser = parser_for(__file__, __doc__)  # NEW:
    parser.add_argument("--cpu-replicas", "--cpu_replicas", type=int, default=0)  # NEW:
    args = parser.parse_args()  # NEW:
    check_one_process(args.cpu_replicas)  # NEW:
    device = prepare(args)
    images, labels = load_channel(args.training)
    test = load_channel(args.test, images)

    dataset = TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))
    generator = torch.Generator()
    sampler = RandomSampler(dataset, generator=generator)
    loader = DataLoader(dataset, args.global_batch_size, sampler=sampler, drop_last=True)

    model = Classifier(images.shape[1:], args.hidden_units).to(device)
    parallel_model = data_parallel(model, args.cpu_replicas)  # NEW: torch.nn.DataParallel
    optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)

    report = Report(args, weights_of(model))
    kept = Checkpoints(args, model, optimizer, report)  # resumes from the newest, if there is one
    for epoch, steps in epochs_and_steps(args, len(labels)):
        generator.manual_seed(args.seed + epoch)
        for batch_images, batch_labels in kept.batches(loader, epoch, steps):
            logits = parallel_model(batch_images.to(device))  # NEW: the wrapped model
            loss = cross_entropy(logits, batch_labels.to(device))  # NEW: logits
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            report.step(loss.detach())
        report.end_epoch(epoch, evaluate=lambda: accuracy(model, *test))

    report_weights(args, weights_of(model))
    save_model(model, args.save_to, images.shape[1:], args.hidden_units)


if __name__ == "__main__":
    run_main(main)
