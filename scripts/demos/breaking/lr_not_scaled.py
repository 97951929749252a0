"""More ranks take a larger global batch, and the learning rate stays as it was."""

import torch
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from breaking.parts import classifier, sgd, start
from common.data import load_channel
from common.ranks_torch import all_reduce_mean, cleanup
from common.report import emit

LOCAL_BATCH = 16  # of every rank: N ranks take N times as many images per step


def train(args) -> None:
    """Train --epochs epochs. --learning-rate is the right one for one rank."""
    rank, world_size = start(args)
    dataset = TensorDataset(*map(torch.from_numpy, load_channel(args.training)))
    sampler: DistributedSampler = DistributedSampler(dataset, seed=args.seed, drop_last=True)
    loader = DataLoader(dataset, LOCAL_BATCH, sampler=sampler, drop_last=True)
    model = DistributedDataParallel(classifier(args))

    learning_rate = args.learning_rate * world_size if args.fixed else args.learning_rate
    optimizer = sgd(model, learning_rate)
    for epoch in range(1, args.epochs + 1):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            loss = cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        # The loss of all images with the epoch's last weights: alike for any number of ranks.
        with torch.no_grad():
            whole = cross_entropy(model.module(dataset.tensors[0]), dataset.tensors[1]).item()
        whole = round(all_reduce_mean(whole), 4)
        if rank == 0:
            record = {"epoch": epoch, "learning_rate": learning_rate, "steps": len(loader)}
            emit(event="loss", ranks=world_size, **record, train_loss=whole)
    cleanup()
