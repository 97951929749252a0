"""All-reduces over narrow links, 2 instances of 4 ranks: how much topology matters, and whether
the cost model knows.

Each rate is one job of scripts/demos/measure_all_reduce.py, which first measures the links of both
tiers. The model predicts from those alone. The bound of a ratio is that of the bytes over an
instance's link.
"""

from __future__ import annotations

import statistics

from rich.console import Console
from rich.table import Table

from tools.bench import jobs
from workshop.measure import alpha_beta
from workshop.output import events
from workshop.paths import DEMOS

INSTANCES, RANKS_PER_INSTANCE = 2, 4
ALGORITHMS = ("gloo", "ring", "interleaved_ring", "hierarchical")
MBITS = (100, 200, 400)
RATIO_MBIT = 200
LARGE, SMALL = 8 * 2**20, 2**20
# slower, faster
RATIOS = [("gloo", "hierarchical"), ("interleaved_ring", "ring")]
MIN_BLOCKS = 5


def run(runs: int) -> None:
    """Measure and print. runs: blocks of each all-reduce, at least 5."""
    blocks, rows = max(runs, MIN_BLOCKS), []
    with jobs.emulator() as (emulated, _):
        for mbit in MBITS:
            rows += measure(emulated, mbit, blocks)
    print_ratios([row for row in rows if row["mbit"] == RATIO_MBIT])
    print_predictions(rows)
    print(f"medians of {blocks}; the slowest of {INSTANCES * RANKS_PER_INSTANCE} ranks counts")


def measure(emulated: jobs.Jobs, mbit: int, blocks: int) -> list[dict]:
    """A row for each algorithm and size at this rate: measured, predicted, bound (seconds)."""
    lines = emulated.run(
        DEMOS / "measure_all_reduce.py",
        instances=INSTANCES,
        processes=RANKS_PER_INSTANCE,
        links=f"{mbit}mbit",
        algorithms=",".join(ALGORITHMS),
        bytes=f"{LARGE},{SMALL}",
        blocks=blocks,
    )
    tiers = alpha_beta.HierarchicalLinks.from_measurements(events(lines, "link"))
    ranks = {"instances": INSTANCES, "ranks_per_instance": RANKS_PER_INSTANCE}
    rows = []
    for record in events(lines, "all_reduce"):
        name, size = record["algorithm"], record["bytes"]
        rows.append(
            {
                "mbit": mbit,
                "algorithm": name,
                "bytes": size,
                "measured": statistics.median(record["seconds"]),
                "predicted": alpha_beta.estimated_seconds(name, size, **ranks, links=tiers),
                "bound": alpha_beta.bound(name, size, **ranks, bits_per_second=mbit * 1e6),
            }
        )
    return rows


def print_ratios(rows: list[dict]) -> None:
    """How much slower what ignores the instances is, beside the bound."""
    large = {row["algorithm"]: row for row in rows if row["bytes"] == LARGE}
    table = Table("algorithms", "slower, ms", "faster, ms", "ratio", "bound of the ratio")
    for slow, fast in RATIOS:
        ratio = large[slow]["measured"] / large[fast]["measured"]
        bound = large[slow]["bound"] / large[fast]["bound"]
        ms = [f"{1000 * large[name]['measured']:.0f}" for name in (slow, fast)]
        table.add_row(f"{slow} against {fast}", *ms, f"{ratio:.2f}", f"{bound:.2f}")
    print(f"\n{LARGE / 2**20:.0f} MiB at {RATIO_MBIT} Mbit/s")
    Console(width=100).print(table)


def print_predictions(rows: list[dict]) -> None:
    """Each measurement beside its prediction and its bound, and the median error."""
    table = Table("Mbit/s", "MiB", "algorithm", "bound, ms", "predicted, ms", "measured, ms", "off")
    for row in rows:
        ms = [f"{1000 * row[name]:.0f}" for name in ("bound", "predicted", "measured")]
        off = f"{row['predicted'] / row['measured'] - 1:+.0%}"
        size = f"{row['bytes'] / 2**20:g}"
        table.add_row(str(row["mbit"]), size, row["algorithm"], *ms, off)
    Console(width=100).print(table)
    errors = [abs(row["predicted"] / row["measured"] - 1) for row in rows]
    median, largest = statistics.median(errors), max(errors)
    print(f"{len(rows)} points: median error {median:.0%}, largest {largest:.0%} (bound 25%)")
