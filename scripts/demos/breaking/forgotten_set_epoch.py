"""The sampler is not told of the epoch, and shuffles every epoch alike."""

import hashlib

import torch
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from breaking.parts import classifier, sgd, start
from common.data import load_channel
from common.ranks_torch import cleanup
from common.report import emit

EPOCHS = 2


def train(args) -> None:
    """Train two epochs; say in which order each rank saw its images."""
    rank, world_size = start(args)
    dataset = TensorDataset(*map(torch.from_numpy, load_channel(args.training)))
    sampler: DistributedSampler = DistributedSampler(dataset, seed=args.seed, drop_last=True)
    loader = DataLoader(dataset, args.global_batch_size // world_size, sampler=sampler)
    model = DistributedDataParallel(classifier(args))
    optimizer = sgd(model, args.learning_rate)

    for epoch in range(1, EPOCHS + 1):
        if args.fixed:
            sampler.set_epoch(epoch)
        order = hashlib.sha256()
        for images, labels in loader:
            loss = cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            order.update(images.numpy().tobytes())
        emit(event="order", rank=rank, epoch=epoch, images_in_order=order.hexdigest()[:16])
    cleanup()
