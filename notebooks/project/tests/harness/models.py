"""The models and batches of parts 2 and 3. Every rank can make every rank's."""

import itertools
import random

import torch
from torch import nn

FEATURES = 6


def layers(draw: random.Random, count: int) -> list[int]:
    """Widths of a perceptron of so many layers."""
    return [FEATURES, *(draw.randint(5, 40) for _ in range(count - 1)), 3]


def perceptron(widths: list[int], seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    pairs = itertools.pairwise(widths)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(a, b), nn.Tanh()) for a, b in pairs))
    model.register_buffer("running_mean", torch.rand(4))
    model.register_buffer("batches", torch.randint(2**40, (2,)))
    model.register_buffer("mask", torch.rand(3), persistent=False)
    return model


def sizes(widths: list[int]) -> tuple[int, int]:
    """(bytes of a perceptron's parameters, of the largest one)."""
    all_bytes = [parameter.nbytes for parameter in perceptron(widths).parameters()]
    return sum(all_bytes), max(all_bytes)


class Tied(nn.Module):
    """One weight matrix, used twice."""

    def __init__(self, width: int, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.first, self.middle = nn.Linear(FEATURES, width), nn.Linear(width, width)
        self.last = nn.Linear(width, width)
        self.last.weight = self.middle.weight

    def forward(self, x):
        return self.last(torch.tanh(self.middle(torch.tanh(self.first(x)))))


class Branches(nn.Module):
    """The batch decides which branch is used; one is never used, and one is frozen."""

    def __init__(self, width: int, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.first = nn.Linear(FEATURES, width)
        self.left, self.right = nn.Linear(width, 3), nn.Linear(width, 3)
        self.unused = nn.Linear(width, 3)
        self.frozen = nn.Linear(3, 3).requires_grad_(False)

    def forward(self, x):
        branch = self.left if x[0, 0] > 0 else self.right
        return self.frozen(branch(torch.tanh(self.first(x))))


def batch(rank: int, step: int, samples: int) -> torch.Tensor:
    """Other inputs on each rank; the first number's sign takes turns."""
    generator = torch.Generator().manual_seed(100 * step + rank)
    x = torch.randn(samples, FEATURES, generator=generator)
    x[0, 0] = x[0, 0].abs() * (1 if (rank + step) % 2 else -1)
    return x


def loss(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """A mean over the samples."""
    return ((model(x) - x[:, :1]) ** 2).sum(1).mean()
