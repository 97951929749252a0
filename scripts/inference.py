"""Serve the classifier of train_torch*.py: SageMaker's PyTorch image calls the functions below.

    estimator.deploy(initial_instance_count=1, instance_type=..., entry_point="inference.py")
    PyTorchModel(model_data=..., entry_point="inference.py", source_dir="scripts", ...)

It needs the folder `common` beside it, which source_dir brings along. A request holds images,
(n, height, width, channels), pixels 0 to 255, as

    application/x-npy      an array: what the SDK's PyTorchPredictor sends
    application/json       [image, ...] or {"instances": [image, ...]}
    application/jsonlines  an image, or {"images": image}, on each line: for batch transform

and the answer the probabilities, (n, 10), in the form that is accepted.
"""

import io
import json

import numpy as np
import torch

from common.model_torch import load_model

ARRAY, JSON, LINES = "application/x-npy", "application/json", "application/jsonlines"


def model_fn(model_dir):
    """Return the trained Classifier, in evaluation mode."""
    return load_model(model_dir)


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
        raise ValueError(f"content type {content_type}; wanted is {ARRAY}, {JSON} or {LINES}")
    if images.ndim != 4 or images.dtype.kind not in "iuf":
        raise ValueError(f"images of shape {images.shape}; wanted is (n, height, width, channels)")
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
