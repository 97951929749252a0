"""Measure a machine's messages and all-reduces with `start_ranks`, beside the model's estimates."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from workshop.launch.ranks import Ranks
from workshop.measure.all_reduces import ALGORITHMS
from workshop.measure.alpha_beta import Link, SharedLinks, estimated_seconds

KINDS = ("one way", "all at once")
ATTEMPTS = 5  # at finding a moment in which a busy machine leaves the messages alone


def least_seconds(ranks: Ranks, names: Sequence[str], n_bytes: int, blocks: int) -> dict:
    """Seconds of one call of each, the least of `blocks` measurements, by name.

    names: as for interleaved_seconds in scripts/collectives/timing.py. A measurement ends when the
    slowest rank is done. Why the least: other programs only ever add time.
    """
    calls = max(1, min(10, 1_000_000 // n_bytes))
    timer = "collectives.timing:interleaved_seconds"
    by_rank = ranks.run(timer, list(names), n_bytes, calls, blocks, timeout=300)
    return {name: float(np.max([one[name] for one in by_rank], axis=0).min()) for name in names}


def measure_alpha_beta(ranks: Ranks, largest_bytes: int, blocks: int) -> SharedLinks:
    """Alpha and beta, for one message and for one from every rank at the same time.

    Each pair comes from two measured messages: 8 bytes, and largest_bytes. Raises ValueError if
    the machine is so busy that again and again the small one took longer.
    """
    least: dict[tuple[int, str], float] = {}
    for attempt in itertools.count(1):
        for n_bytes in (8, largest_bytes):
            for kind, seconds in least_seconds(ranks, KINDS, n_bytes, blocks).items():
                least[n_bytes, kind] = min(seconds, least.get((n_bytes, kind), seconds))
        points = [[(size, least[size, kind]) for size in (8, largest_bytes)] for kind in KINDS]
        try:
            alone, busy = (Link.through(*two) for two in points)
        except ValueError:
            if attempt == ATTEMPTS:
                raise
        else:
            return SharedLinks(alone, busy, at_once=ranks.world_size)


def measure_all_reduces(
    ranks: Ranks, sizes: Sequence[int], links: SharedLinks, blocks: int
) -> pd.DataFrame:
    """A row for each size and algorithm: bytes, algorithm, measured and predicted seconds.

    gloo is torch's own, which the model does not know: its `predicted` is missing.
    """
    names, rows = list(ALGORITHMS), []
    for n_bytes in sizes:
        seconds = least_seconds(ranks, [*names, "gloo"], n_bytes, blocks)
        for name, measured in seconds.items():
            predicted = float("nan")
            if name in names:
                predicted = estimated_seconds(name, n_bytes, ranks.world_size, links)
            rows.append((n_bytes, name, measured, predicted))
    return pd.DataFrame(rows, columns=["bytes", "algorithm", "measured", "predicted"])
