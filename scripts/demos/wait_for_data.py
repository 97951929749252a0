"""How long does a training step wait for its data? The same pictures in many files, or in one.

    python scripts/demos/wait_for_data.py --large URL URL URL ...

Each small file holds a picture of 32 x 32 pixels as CIFAR-10 stores it, a byte of label and 3,072
of pixels; the large file holds all of them. A DataLoader fetches a small one when a batch needs it,
in the training process or in workers of its own; the large one is fetched whole, before the first
step. Prints for each round and way a JSON line with the mean seconds in which a step waited and
computed, and the seconds in which the large file was fetched.
"""

import random
import time
import urllib.request

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, RandomSampler, TensorDataset

from common.arguments import add_flag, number, plain_parser
from common.errors import run_main
from common.report import emit

BATCH = 10
RECORD = 1 + 3 * 32 * 32  # bytes of a picture
WAYS = {  # way: which files, how many workers
    "one by one": ("small", 0),
    "one by one again": ("small", 0),
    "2 workers": ("small", 2),
    "1 file, 2 workers": ("large", 2),
    "1 file": ("large", 0),
}


class Pictures(Dataset):
    """Small files: each picture is a request."""

    def __init__(self, addresses: list[str]) -> None:
        self.addresses = addresses

    def __len__(self) -> int:
        return len(self.addresses)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        """Return pixels (3, 32, 32) from 0 to 1, and the label."""
        with urllib.request.urlopen(self.addresses[index]) as reply:
            (pixels,), (label,) = parse(reply.read())
        return pixels, int(label)


def parse(content: bytes) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the pixels (n, 3, 32, 32) from 0 to 1, and the labels (n,), of n records."""
    records = torch.frombuffer(bytearray(content), dtype=torch.uint8).reshape(-1, RECORD)
    return records[:, 1:].reshape(-1, 3, 32, 32) / 255, records[:, 0].long()


def build_model() -> torch.nn.Module:
    """Return a small convolutional network from pixels (n, 3, 32, 32) to logits (n, 10)."""
    return torch.nn.Sequential(
        *(torch.nn.Conv2d(3, 64, 3), torch.nn.ReLU(), torch.nn.Conv2d(64, 64, 3), torch.nn.ReLU()),
        *(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10)),
    )


def measure(dataset: Pictures | TensorDataset, workers: int, steps: int) -> tuple[float, float]:
    """Return for how many seconds a step waited for its batch and computed: means over `steps`."""
    model = build_model()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    sampler = RandomSampler(dataset, replacement=True, num_samples=BATCH * (steps + 1))
    batches = iter(DataLoader(dataset, BATCH, sampler=sampler, num_workers=workers))
    waited = computed = 0.0
    for step in range(steps + 1):
        began = time.perf_counter()
        images, labels = next(batches)
        arrived = time.perf_counter()
        optimizer.zero_grad()
        cross_entropy(model(images), labels).backward()
        optimizer.step()
        if step:  # the first batch is left out: until it comes, the workers start
            waited += arrived - began
            computed += time.perf_counter() - arrived
    return waited / steps, computed / steps


def main() -> None:
    """Measure each way in each round, in random order."""
    parser = plain_parser(__doc__)
    add_flag(parser, "--rounds", type=number(int, 1), default=5)
    add_flag(parser, "--steps", type=number(int, 1), default=10)
    parser.add_argument("--large", required=True, help="the file's URL")
    parser.add_argument("small", nargs="+", help="the small files' URLs")
    args = parser.parse_args()
    torch.set_num_threads(1)
    began = time.perf_counter()
    with urllib.request.urlopen(args.large) as reply:
        large = TensorDataset(*parse(reply.read()))
    fetched = time.perf_counter() - began
    datasets: dict[str, Pictures | TensorDataset]
    datasets = {"small": Pictures(args.small), "large": large}
    for round_number in range(args.rounds):
        for way in random.Random(round_number).sample(list(WAYS), len(WAYS)):
            files, workers = WAYS[way]
            waited, computed = measure(datasets[files], workers, args.steps)
            times = {"wait": waited, "compute": computed, "fetch_large": fetched}
            emit(event="waited", round=round_number, way=way, **times)


if __name__ == "__main__":
    run_main(main)
