"""A small GPT on characters, and the text that it learns: Python's own help pages."""

from pydoc_data.topics import topics

import torch
from torch import nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

CONTEXT = 64  # characters that the model sees


def load_text() -> tuple[torch.Tensor, int]:
    """Return the text as numbers, int64 (n,), one for each character, and how many there are."""
    text = "\n".join(topics[name] for name in sorted(topics))
    characters = sorted(set(text))
    number = {character: index for index, character in enumerate(characters)}
    return torch.tensor([number[character] for character in text]), len(characters)


def batch(text: torch.Tensor, sequences: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `sequences` random pieces of the text and, shifted by one, what follows.

    Both int64 (sequences, CONTEXT). The same seed gives the same pieces.
    """
    generator = torch.Generator().manual_seed(seed)
    starts = torch.randint(len(text) - CONTEXT - 1, (sequences, 1), generator=generator)
    places = starts + torch.arange(CONTEXT + 1)
    return text[places[:, :-1]], text[places[:, 1:]]


class Block(nn.Module):
    """Attention, then a small network; each adds to what it was given."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """From (n, length, width) to the same."""
        n, length, width = x.shape
        parts = self.project(self.norms[0](x)).view(n, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(n, length, width))
        return x + self.network(self.norms[1](x))


class GPT(nn.Module):
    """Characters int64 (n, CONTEXT) to logits (n x CONTEXT, characters). No dropout.

    checkpointing: keep only what enters each block, and compute the rest again for backward.
    """

    checkpointing = False

    def __init__(self, characters: int, width: int = 256, blocks: int = 4, heads: int = 4):
        super().__init__()
        self.characters = nn.Embedding(characters, width)
        self.places = nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm, self.logits = nn.LayerNorm(width), nn.Linear(width, characters)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """See the class."""
        x = self.characters(x) + self.places(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointing else block(x)
        return self.logits(self.norm(x).flatten(0, 1))


def mean_loss(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy of the next character: ln of how many, before training."""
    return cross_entropy(model(x), y.flatten())
