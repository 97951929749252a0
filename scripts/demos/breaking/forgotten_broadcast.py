"""Ranks average their gradients, and began with different weights."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

from breaking.parts import batches, classifier, sgd, start
from common.evidence import Evidence
from common.model_torch import weights_of
from common.ranks_torch import cleanup
from common.report import emit

STEPS = 20


def train(args) -> None:
    """Train with gradients that are averaged by hand, as Horovod and DDP do it inside."""
    rank, world_size = start(args)
    torch.manual_seed(args.seed + rank)  # as people do it, so that ranks augment differently
    model = classifier(args)
    if args.fixed:
        for parameter in model.parameters():
            dist.broadcast(parameter.data, src=0)
    optimizer = sgd(model, args.learning_rate)

    evidence = Evidence(rank, weights_of(model), optimizer_variables=0)
    for step, (images, labels) in enumerate(batches(args, rank, world_size, STEPS), start=1):
        loss = cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= world_size
        optimizer.step()
        evidence.step(images, lambda: weights_of(model), optimizer_variables=0)
        if step in (1, STEPS):
            emit(event="step", rank=rank, step=step, train_loss=round(loss.item(), 4))
    evidence.show(weights_of(model))
    cleanup()
