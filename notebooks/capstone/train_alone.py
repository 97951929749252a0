"""Train a classifier of 8 x 8 digits in one process. Leave this file as it is.

python train_alone.py --training ../../data/digits/training --test ../../data/digits/test
"""

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, RandomSampler, TensorDataset


def parse_args():
    env, checkpoints = os.environ.get, "/opt/ml/checkpoints"
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--global-batch-size", type=int, default=240, help="over all ranks")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--training", default=env("SM_CHANNEL_TRAINING"))
    parser.add_argument("--test", default=env("SM_CHANNEL_TEST"))
    parser.add_argument("--save-to", default=env("SM_MODEL_DIR", "model"))
    parser.add_argument("--checkpoints", default=checkpoints if os.path.isdir(checkpoints) else "")
    return parser.parse_args()


def load(folder):
    """A channel's images, uint8 (n, 8, 8, 1), and labels, int64 (n,)."""
    parts = [np.load(path) for path in sorted(Path(folder).glob("part-*.npz"))]
    arrays = (np.concatenate([part[key] for part in parts]) for key in ("images", "labels"))
    return [torch.from_numpy(array) for array in arrays]


class Classifier(nn.Sequential):
    """Smooth, without a ReLU: there, rounding alone can switch a unit, and weights drift apart."""

    def __init__(self):
        convolutions = [nn.Conv2d(1, 32, 3, padding=1), nn.Tanh(), nn.Conv2d(32, 64, 3), nn.Tanh()]
        super().__init__(*convolutions, nn.Flatten(), nn.Linear(64 * 6 * 6, 10))

    def forward(self, images):
        return super().forward(images.reshape(-1, 1, 8, 8).float() / 255)


def accuracy(model, images, labels):
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def save(state, path):
    """Renamed at the end: the file is there whole, or not at all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    torch.save(state, f"{path}.{os.getpid()}")
    os.replace(f"{path}.{os.getpid()}", path)


def report(event, **record):
    print(json.dumps({"event": event, **record}) + "\n", end="", flush=True)


def main():
    args = parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    dataset = TensorDataset(*load(args.training))
    sampler = RandomSampler(dataset, generator=torch.Generator())
    loader = DataLoader(dataset, args.global_batch_size, sampler=sampler, drop_last=True)
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(args.epochs):
        sampler.generator.manual_seed(args.seed + epoch)
        began = time.perf_counter()
        for images, labels in loader:
            loss = cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        record = {"seconds": time.perf_counter() - began, "step": (epoch + 1) * len(loader)}
        report("epoch", test_accuracy=accuracy(model, *load(args.test)), **record)
    save(model.state_dict(), f"{args.save_to}/model.pt")


if __name__ == "__main__":
    main()
