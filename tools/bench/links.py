"""All-reduces over narrow links, 2 instances of 4 ranks: how much topology matters, and whether
the cost model knows.

Each rate is one job of scripts/demos/measure_all_reduce.py, which first measures the links of both
tiers. The model predicts from those alone. The bound of a ratio is that of the bytes over an
instance's link.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tools.bench import jobs
from workshop.measure import alpha_beta
from workshop.output import events

DEMOS = Path(__file__).parents[2] / "scripts" / "demos"
INSTANCES, RANKS_PER_INSTANCE = 2, 4
ALGORITHMS = ("gloo", "ring", "interleaved_ring", "hierarchical")
MBITS = (100, 200, 400)
FIRST_MBIT = 200  # the rate of the ratios
LARGE, SMALL = 8 * 2**20, 2**20
# slower, faster, and what is said of the two
RATIOS = [("gloo", "hierarchical"), ("interleaved_ring", "ring")]
LEAST_BLOCKS = 5


def run(runs: int) -> None:
    """Measure and print. runs: blocks of each all-reduce, at least 5."""
    blocks, rows = max(runs, LEAST_BLOCKS), []
    with jobs.emulator() as (emulator, _):
        source = emulator.put_source("scripts.tar.gz", jobs.sources(DEMOS))
        for mbit in sorted(MBITS, key=lambda one: one != FIRST_MBIT):
            found = measure(emulator, source, mbit, blocks)
            rows += found
            if mbit == FIRST_MBIT:
                print_ratios(found)
    print_predictions(rows)
    print(f"medians of {blocks}; the slowest of {INSTANCES * RANKS_PER_INSTANCE} ranks counts")


def measure(emulator: jobs.JobsEmulator, source: str, mbit: int, blocks: int) -> list[dict]:
    """A row for each algorithm and size at this rate: measured, predicted, bound (seconds)."""
    place = {"instances": INSTANCES, "ranks_per_instance": RANKS_PER_INSTANCE}
    lines = emulator.run(
        f"bench-links-{mbit}",
        source,
        "measure_all_reduce.py",
        instances=INSTANCES,
        processes=RANKS_PER_INSTANCE,
        hyperparameters={
            "algorithms": ",".join(ALGORITHMS),
            "bytes": f"{LARGE},{SMALL}",
            "blocks": blocks,
        },
        environment={"LOCAL_SAGEMAKER_BANDWIDTH": f"{mbit}mbit"},
    )
    tiers = alpha_beta.HierarchicalLinks.from_measurements(events(lines, "link"))
    rows = []
    for one in events(lines, "all_reduce"):
        what = one["algorithm"], one["bytes"]
        rows.append(
            {
                "mbit": mbit,
                "algorithm": one["algorithm"],
                "bytes": one["bytes"],
                "measured": statistics.median(one["seconds"]),
                "predicted": alpha_beta.estimated_seconds(*what, links=tiers, **place),
                "bound": alpha_beta.bound(*what, bits_per_second=mbit * 1e6, **place),
            }
        )
    return rows


def print_ratios(rows: list[dict]) -> None:
    """How much slower what ignores the instances is, beside the bound."""
    large = {one["algorithm"]: one for one in rows if one["bytes"] == LARGE}
    table = Table("algorithms", "slower, ms", "faster, ms", "ratio", "bound of the ratio")
    for slow, fast in RATIOS:
        ratio = large[slow]["measured"] / large[fast]["measured"]
        bound = large[slow]["bound"] / large[fast]["bound"]
        ms = [f"{1000 * large[name]['measured']:.0f}" for name in (slow, fast)]
        table.add_row(f"{slow} against {fast}", *ms, f"{ratio:.2f}", f"{bound:.2f}")
    print(f"\n{LARGE / 2**20:.0f} MiB at {FIRST_MBIT} Mbit/s")
    Console(width=100).print(table)


def print_predictions(rows: list[dict]) -> None:
    """Each measurement beside its prediction and its bound, and the median error."""
    table = Table("Mbit/s", "MiB", "algorithm", "bound, ms", "predicted, ms", "measured, ms", "off")
    for one in rows:
        ms = [f"{1000 * one[name]:.0f}" for name in ("bound", "predicted", "measured")]
        off = f"{one['predicted'] / one['measured'] - 1:+.0%}"
        size = f"{one['bytes'] / 2**20:g}"
        table.add_row(str(one["mbit"]), size, one["algorithm"], *ms, off)
    Console(width=100).print(table)
    errors = [abs(one["predicted"] / one["measured"] - 1) for one in rows]
    median, largest = statistics.median(errors), max(errors)
    print(f"{len(rows)} points: median error {median:.0%}, largest {largest:.0%} (bound 25%)")
