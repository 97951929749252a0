"""A step of training on a narrow link: a CNN, DDP on 2 instances of 2 ranks.

DDP's own all-reduce against the two-tier one, a job of each. The losses are to be the same: only
the way of the gradients differs. The bound of the ratio is that of the bytes over an instance's
link; a step computes besides, so it stays below.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import jobs
from bench.links import DEMOS
from data_prep import digits
from workshop.measure import alpha_beta
from workshop.output import events

INSTANCES, RANKS_PER_INSTANCE = 2, 2
MBIT = 50
HYPERPARAMETERS = {"hidden-units": 4096, "global-batch-size": 128, "threads-per-rank": 1}
LEAST_EPOCHS = 5
# --all-reduce, and the algorithm of the cost model
WAYS = {"default": "gloo", "two_tier": "two_tier"}


def run(runs: int) -> None:
    """Measure and print. runs: epochs of each job, at least 5; one goes before, uncounted."""
    epochs, found = 1 + max(runs, LEAST_EPOCHS), {}
    with jobs.endpoint() as (endpoint, folder):
        source = endpoint.put_source("scripts.tar.gz", jobs.sources(DEMOS))
        made = Path(digits.prepare(folder / "digits", quiet=True))
        data = {name: endpoint.put_folder(name, made / name) for name in ("training", "test")}
        for way in WAYS:
            lines = endpoint.run(
                f"bench-training-{way.replace('_', '-')}",
                source,
                "train_torch_links.py",
                instances=INSTANCES,
                processes=RANKS_PER_INSTANCE,
                hyperparameters={**HYPERPARAMETERS, "epochs": epochs, "all-reduce": way},
                environment={"LOCAL_SAGEMAKER_LINKS": f"{MBIT}mbit"},
                channels=data,
            )
            found[way] = events(lines, "start")[0], events(lines, "epoch")
    print_steps(found, epochs - 1)


def print_steps(found: dict[str, tuple[dict, list[dict]]], counted: int) -> None:
    """A row for each way, the ratio, and whether the losses agree.

    found: way -> its "start" record and its "epoch" records. The first epoch is not counted.
    """
    gradient_bytes = found["default"][0]["gradient_bytes"]
    place = {"instances": INSTANCES, "ranks_per_instance": RANKS_PER_INSTANCE}
    table = Table("--all-reduce", "step, ms", "gradients over the link at best, ms", "last loss")
    steps, least = {}, {}
    for way, algorithm in WAYS.items():
        epochs = found[way][1]
        steps[way] = statistics.median(one["step_seconds"] for one in epochs[1:])
        least[way] = alpha_beta.bound(
            algorithm, gradient_bytes, bits_per_second=MBIT * 1e6, **place
        )
        ms = [f"{1000 * one[way]:.0f}" for one in (steps, least)]
        table.add_row(way, *ms, f"{epochs[-1]['train_loss']:.6f}")
    print(f"\n{gradient_bytes / 1e6:.2f} MB of gradients, {MBIT} Mbit/s")
    Console(width=100).print(table)
    ratio, bound = (one["default"] / one["two_tier"] for one in (steps, least))
    print(f"default / two_tier: {ratio:.2f} (bound {bound:.2f}), medians of {counted} epochs")
    losses = zip(
        *([one["train_loss"] for one in epochs] for _, epochs in found.values()), strict=True
    )
    apart = max(abs(a - b) / b for a, b in losses)
    print(f"mean losses of the epochs: at most {apart:.1e} apart, relatively")
