"""Train with one batch size and one learning rate, on one rank alone."""

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from common.model_torch import Classifier, accuracy


def rate_at(step: int, setting: dict, steps_per_epoch: int) -> float:
    """Return the learning rate of a step, counted from 0.

    During the warm-up it rises in a straight line from `first_rate` to `learning_rate`.
    """
    warmup_steps = setting["warmup_epochs"] * steps_per_epoch
    done = min(1.0, step / warmup_steps) if warmup_steps else 1.0
    return setting["first_rate"] + done * (setting["learning_rate"] - setting["first_rate"])


def train(seed: int, setting: dict, epochs: int, training: tuple, test: tuple) -> dict:
    """Train a Classifier; return its results.

    Args:
        seed: of the weights and of the shuffling.
        setting: global_batch_size (images per update), learning_rate, first_rate and
            warmup_epochs.
        epochs: passes over the training images, the same for every setting.
        training, test: (images uint8, labels int64) each.

    Returns:
        updates: how often the weights changed. losses: mean of each epoch.
        accuracy: share of the test images, 0 to 1.
    """
    images, labels = map(torch.from_numpy, training)
    batch = setting["global_batch_size"]
    steps_per_epoch = len(labels) // batch
    torch.manual_seed(seed)
    model = Classifier(tuple(images.shape[1:]))
    optimizer = torch.optim.SGD(model.parameters(), lr=setting["learning_rate"], momentum=0.9)
    step, losses = 0, []
    for _ in range(epochs):
        order = torch.randperm(len(labels))
        step_losses = []
        for chosen in order[: steps_per_epoch * batch].split(batch):
            for group in optimizer.param_groups:
                group["lr"] = rate_at(step, setting, steps_per_epoch)
            loss = cross_entropy(model(images[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step_losses.append(loss.item())
            step += 1
        losses.append(float(np.mean(step_losses)))
    return {"updates": step, "losses": losses, "accuracy": accuracy(model, *test)}
