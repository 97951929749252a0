"""Run a learner's data-parallel training on real ranks, and one process beside it."""

import copy

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector

IMAGES, PIXELS, STEPS = 60, 9, 4


def warm_up() -> None:
    """Load what a first training step loads: on a busy machine that takes longer than training."""
    images = torch.zeros(IMAGES, PIXELS)
    _trained_alone(_model(0), images, torch.zeros(IMAGES, dtype=torch.int64), 1)


def call(answer) -> dict:
    """Call answer(model, loss_of, images, labels, steps) on this rank; return what it did.

    Returns:
        images: the numbers of the images that it computed a loss of. all_images: their number.
        given_weights: rank 0's at the start. first_weights: this rank's at its first loss.
        weights: at its end. expected: one process's at its end, from given_weights;
        expected_of_the_sum: the same, had it taken steps world_size times as long.
    """
    torch.manual_seed(0)
    images, labels = torch.randn(IMAGES, PIXELS), torch.randint(10, (IMAGES,))
    images[:, 0] = torch.arange(IMAGES) / IMAGES  # says which image it is
    models = [_model(rank) for rank in range(dist.get_world_size())]
    own_model = models[dist.get_rank()]
    seen: set[int] = set()
    first: list[list[float]] = []

    def loss_of(model, images, labels) -> torch.Tensor:
        if not first:
            first.append(_weights(model))
        seen.update((images[:, 0] * IMAGES).round().int().tolist())
        return cross_entropy(model(images), labels)

    alone = [_trained_alone(models[0], images, labels, n) for n in (1, dist.get_world_size())]
    answer(own_model, loss_of, images.clone(), labels.clone(), STEPS)
    return {
        "images": sorted(seen),
        "all_images": IMAGES,
        "given_weights": _weights(_model(0)),
        "first_weights": first[0] if first else [],
        "weights": _weights(own_model),
        "expected": alone[0],
        "expected_of_the_sum": alone[1],
    }


def _model(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Linear(PIXELS, 10)


def _weights(model: torch.nn.Module) -> list[float]:
    return parameters_to_vector(model.parameters()).tolist()


def _trained_alone(model, images, labels, times: int) -> list[float]:
    """Weights of one process with all images, and steps `times` as long."""
    model = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5 * times)
    for _ in range(STEPS):
        optimizer.zero_grad()
        cross_entropy(model(images), labels).backward()
        optimizer.step()
    return _weights(model)
