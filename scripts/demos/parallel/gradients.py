"""The gradient of some images, on one rank."""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from common.model_torch import Classifier

SEED = 0


def new_model(batch_norm: bool = False) -> Classifier:
    """Return a Classifier for 8 x 8 grey images; every rank gets the same first weights.

    batch_norm: normalise the first layer's outputs with the mean and variance of the batch.
    """
    torch.manual_seed(SEED)
    model = Classifier((8, 8, 1))
    if batch_norm:
        model.layers.insert(1, nn.BatchNorm2d(16))
    return model


def gradient(model: nn.Module, images: np.ndarray, labels: np.ndarray) -> torch.Tensor:
    """Return the gradient of the mean loss over these images, as one flat tensor.

    Args:
        model: takes pixels uint8 and gives logits; wrapped in DistributedDataParallel or not.
        images: uint8, (n, height, width, channels).
        labels: int64, (n,).
    """
    model.zero_grad()
    loss = cross_entropy(model(torch.from_numpy(images)), torch.from_numpy(labels))
    loss.backward()
    return torch.cat([weight.grad.flatten() for weight in model.parameters()])


def by_ddp(shard: tuple[np.ndarray, np.ndarray]) -> torch.Tensor:
    """Return the gradient that DistributedDataParallel leaves on this rank."""
    return gradient(DistributedDataParallel(new_model()), *shard)
