"""Serve what train_torch*.py saved: SageMaker's PyTorch serving image calls the functions below.

    PyTorchModel(model_data="s3://.../model.tar.gz", entry_point="inference.py", role=role, ...)
    estimator.deploy(initial_instance_count=1, instance_type="ml.m5.large",
                     entry_point="inference.py")

A request holds images, (n, height, width, channels), pixels 0 to 255, as

    application/x-npy      an array: what the SDK's PyTorchPredictor sends
    application/json       [image, ...] or {"instances": [image, ...]}
    application/jsonlines  an image, or {"images": image}, on each line: for batch transform

and the answer the probabilities, (n, 10), in the form that is accepted.
"""

import io
import json
from pathlib import Path

import numpy as np
import torch
from torch import nn

ARRAY, JSON, LINES = "application/x-npy", "application/json", "application/jsonlines"


class Residual(nn.Sequential):
    """Two convolutions whose output is added to their input. At first they add nothing."""

    def __init__(self, channels):
        first, second = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        nn.init.zeros_(second.weight)
        layers = [nn.GroupNorm(8, channels), nn.ReLU(), first]
        super().__init__(*layers, nn.GroupNorm(8, channels), nn.ReLU(), second)

    def forward(self, x):
        return x + super().forward(x)


class Classifier(nn.Sequential):
    """Pixels, 0 to 255, (n, height, width, channels), to logits (n, 10).

    No batch norm, no dropout: with them N ranks would not compute what one process computes.
    """

    def __init__(self, image_shape, hidden_units, channels=32, blocks=0):
        height, width, colours = image_shape
        layers = [nn.Conv2d(colours, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        layers += [nn.Conv2d(16, channels, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        layers += [*(Residual(channels) for _ in range(blocks)), nn.Flatten()]
        layers += [nn.Linear(channels * (height // 4) * (width // 4), hidden_units), nn.ReLU()]
        super().__init__(*layers, nn.Linear(hidden_units, 10))

    def forward(self, images):
        # The layout is named: else torch keeps the permuted strides, and DDP copies gradients.
        pixels = images.permute(0, 3, 1, 2).float(memory_format=torch.contiguous_format)
        return super().forward(pixels / 255)


def model_fn(model_dir):
    """Return the trained Classifier, in evaluation mode."""
    saved = torch.load(Path(model_dir, "model.pt"), map_location="cpu", weights_only=True)
    weights = saved.pop("state_dict")
    model = Classifier(**saved)
    model.load_state_dict(weights)
    return model.eval()


def input_fn(data, content_type):
    """Return the images of a request, uint8 (n, height, width, channels).

    Raises:
        ValueError: another content type, pixels outside 0 to 255, or no list of images.
    """
    if content_type == ARRAY:
        images = np.load(io.BytesIO(data), allow_pickle=False)
    elif content_type == JSON:
        body = json.loads(data)
        images = np.array(body["instances"] if isinstance(body, dict) else body)
    elif content_type == LINES:
        text = data if isinstance(data, str) else data.decode()
        rows = [json.loads(line) for line in text.splitlines() if line.strip()]
        images = np.array([row["images"] if isinstance(row, dict) else row for row in rows])
    else:
        raise ValueError(f"content type {content_type}; expected {ARRAY}, {JSON} or {LINES}")
    if images.ndim != 4 or images.dtype.kind not in "iuf":
        raise ValueError(f"images of shape {images.shape}; expected (n, height, width, channels)")
    if images.size and not (images.min() >= 0 and images.max() <= 255):
        raise ValueError("pixels must be 0 to 255")
    return images.astype(np.uint8)


@torch.no_grad()
def predict_fn(images, model):
    """Return the probabilities, float32 (n, 10)."""
    return torch.softmax(model(torch.from_numpy(images)), dim=1).numpy()


def output_fn(probabilities, accept):
    """Return the probabilities as an array, as JSON, or as JSON lines, a line for each image."""
    for kind in accept.replace(" ", "").split(","):
        if kind == ARRAY:
            raw = io.BytesIO()
            np.save(raw, probabilities)
            return raw.getvalue(), ARRAY
        if kind == LINES:
            return "\n".join(json.dumps(row) for row in probabilities.tolist()), LINES
    return json.dumps(probabilities.tolist()), JSON
