"""Model parallel: the layers of one model on two ranks, and what goes between them."""

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

from parallel.gradients import new_model

FIRST_LAYERS = 7  # convolutions, up to and with Flatten: rank 0. The dense layers: rank 1.
FEATURES = 128  # numbers per image between the two parts


def one_step(images: np.ndarray, labels: np.ndarray) -> dict | None:
    """Run one step, forward and backward, on ranks 0 and 1; other ranks have no part in it.

    Returns:
        weights: how many this rank holds. sent_bytes: by this rank, in this step.
        gradient: of this rank's weights, flat.
    """
    stage = {0: _first_stage, 1: _second_stage}.get(dist.get_rank())
    if stage is None:
        return None
    layers = new_model().layers
    own_layers = layers[:FIRST_LAYERS] if dist.get_rank() == 0 else layers[FIRST_LAYERS:]
    sent = stage(own_layers, torch.from_numpy(images), torch.from_numpy(labels))
    gradient = torch.cat([weight.grad.flatten() for weight in own_layers.parameters()])
    return {"weights": gradient.numel(), "sent_bytes": sent.nbytes, "gradient": gradient}


def _first_stage(layers, images, _) -> torch.Tensor:
    """Send the activations forward, wait, and go on backward with what comes back."""
    activations = layers(images.permute(0, 3, 1, 2).float() / 255)
    dist.send(activations.detach(), dst=1)
    change = torch.empty_like(activations)
    dist.recv(change, src=1)
    activations.backward(change)
    return activations


def _second_stage(layers, _, labels) -> torch.Tensor:
    """Take the activations, compute the loss, send back how the loss changes with each."""
    activations = torch.empty(len(labels), FEATURES, requires_grad=True)
    dist.recv(activations.data, src=0)
    cross_entropy(layers(activations), labels).backward()
    dist.send(activations.grad, dst=0)
    return activations.grad
