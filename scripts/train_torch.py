"""Train a small image classifier in one PyTorch process.

    python scripts/train_torch.py
    python scripts/train_torch.py --epochs 2 --training data/mnist/training --test data/mnist/test

SageMaker: entry_point="train_torch.py", source_dir="scripts". `diff train_torch.py
train_torch_ddp.py` shows what it takes to train on several processes.
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


def main() -> None:
    """Read the arguments, train, evaluate after each epoch, save the model."""
    args = parser_for(__file__, __doc__).parse_args()
    device = prepare(args)
    images, labels = load_channel(args.training)
    test = load_channel(args.test, images)

    dataset = TensorDataset(torch.from_numpy(images), torch.from_numpy(labels))
    generator = torch.Generator()
    sampler = RandomSampler(dataset, generator=generator)
    loader = DataLoader(dataset, args.global_batch_size, sampler=sampler, drop_last=True)

    model = Classifier(images.shape[1:], args.hidden_units).to(device)
    optimizer = torch.optim.SGD(model.parameters(), args.learning_rate, momentum=0.9)

    report = Report(args, weights_of(model))
    kept = Checkpoints(args, model, optimizer, report)  # resumes from the newest, if there is one
    for epoch, steps in epochs_and_steps(args, len(labels)):
        generator.manual_seed(args.seed + epoch)
        for batch_images, batch_labels in kept.batches(loader, epoch, steps):
            loss = cross_entropy(model(batch_images.to(device)), batch_labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            report.step(loss.detach())
        report.end_epoch(epoch, evaluate=lambda: accuracy(model, *test))

    report_weights(args, weights_of(model))
    save_model(model, args.save_to, images.shape[1:], args.hidden_units)


if __name__ == "__main__":
    run_main(main)
