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
    """Layers whose output is added to their input."""

    def forward(self, x):
        return x + super().forward(x)


class Classifier(nn.Sequential):
    """Pixels, 0 to 255, (n, height, width, channels), to logits (n, 10).

    No batch norm, no dropout: with them N ranks would not compute what one process computes.
    """

    def __init__(self, model, image_shape, hidden_units):
        def conv(inputs, outputs, stride=1):
            return nn.Conv2d(inputs, outputs, 3, stride, padding=1)

        height, width, channels = image_shape
        if model == "deep":  # a ResNet of 20 convolutions: 56 MB in 84 tensors
            layers = [conv(channels, 64), nn.GroupNorm(8, 64)]
            for inputs, outputs in [(64, 64), (64, 128), (128, 256), (256, 512)]:
                if inputs < outputs:
                    layers += [conv(inputs, outputs, stride=2), nn.GroupNorm(8, outputs)]
                for _ in range(2):
                    first = [nn.GroupNorm(8, outputs), nn.ReLU(), conv(outputs, outputs)]
                    second = [nn.GroupNorm(8, outputs), nn.ReLU(), conv(outputs, outputs)]
                    nn.init.zeros_(second[-1].weight)  # at first it adds nothing: steadier
                    layers.append(Residual(*first, *second))
            layers += [nn.GroupNorm(8, 512), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
            layers += [nn.Linear(512, 10)]
        else:
            layers = [conv(channels, 16), nn.ReLU(), nn.MaxPool2d(2)]
            layers += [conv(16, 32), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
            layers += [nn.Linear(32 * (height // 4) * (width // 4), hidden_units)]
            layers += [nn.ReLU(), nn.Linear(hidden_units, 10)]
        super().__init__(*layers)

    def forward(self, images):
        # The layout is named: else torch keeps the permuted strides, and DDP copies gradients.
        pixels = images.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format)
        return super().forward(pixels / 255)


def model_fn(model_dir):
    """Return the trained Classifier, in evaluation mode."""
    saved = torch.load(Path(model_dir, "model.pt"), map_location="cpu", weights_only=True)
    model = Classifier(saved["model"], saved["image_shape"], saved["hidden_units"])
    model.load_state_dict(saved["state_dict"])
    return model.eval()


def input_fn(data, content_type):
    """Return the images of a request, uint8 (n, height, width, channels).

    Raises:
        ValueError: another content type, pixels outside 0 to 255, or no list of images.
    """
    if content_type == ARRAY:
        images = np.load(io.BytesIO(data), allow_pickle=False)
    elif content_type == JSON:
        found = json.loads(data)
        images = np.array(found["instances"] if isinstance(found, dict) else found)
    elif content_type == LINES:
        text = data if isinstance(data, str) else data.decode()
        found = [json.loads(line) for line in text.splitlines() if line.strip()]
        images = np.array([one["images"] if isinstance(one, dict) else one for one in found])
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
