"""The classifier in PyTorch: build, measure, save."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from common.arguments import threads_per_rank
from common.data import CLASSES


def prepare(args, local_rank: int = 0, ranks_here: int = 1) -> torch.device:
    """Set seeds and threads; return this rank's device, its own GPU where there is one."""
    torch.set_num_threads(threads_per_rank(args.threads_per_rank, ranks_here))
    torch.manual_seed(args.seed)
    if torch.cuda.is_available():
        device = torch.device("cuda", local_rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
        return device
    return torch.device("cpu")


class Classifier(nn.Module):
    """A small CNN: pixels uint8 (n, height, width, channels), 0 to 255, to logits (n, 10).

    It takes the pixels that a channel holds and divides by 255 itself. There is no batch
    normalisation (its statistics would depend on the local batch) and no dropout: N ranks
    compute exactly what one process computes.
    """

    def __init__(self, image_shape: tuple[int, ...], hidden_units: int = 64):
        super().__init__()
        height, width, channels = image_shape
        self.layers = nn.Sequential(
            nn.Conv2d(channels, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * (height // 4) * (width // 4), hidden_units),
            nn.ReLU(),
            nn.Linear(hidden_units, CLASSES),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return logits (n, 10)."""
        # The layout is named: by itself torch keeps the permuted strides, and DDP then copies.
        pixels = images.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format)
        return self.layers(pixels / 255)


def weights_of(model: nn.Module) -> list[np.ndarray]:
    """Return the weights as arrays, in the order of the state_dict."""
    return [value.detach().cpu().numpy() for value in model.state_dict().values()]


@torch.no_grad()
def accuracy(model: nn.Module, images: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of right answers, 0 to 1: images uint8 (n, h, w, c), labels (n,)."""
    device = next(model.parameters()).device
    right = 0
    for start in range(0, len(labels), 1000):
        logits = model(torch.from_numpy(images[start : start + 1000]).to(device))
        right += int(np.sum(logits.argmax(1).cpu().numpy() == labels[start : start + 1000]))
    return right / len(labels)


def save_model(model: nn.Module, folder: Path, image_shape, hidden_units: int) -> None:
    """Write folder/model.pt: the state_dict and the two arguments that rebuild the Classifier."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    state = {name: value.cpu() for name, value in model.state_dict().items()}
    about = {"image_shape": list(image_shape), "hidden_units": hidden_units}
    torch.save({"state_dict": state, **about}, Path(folder, "model.pt"))
