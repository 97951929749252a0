"""Steps of training that the model of lesson 07 predicts: links x ranks x sizes of the model.

What it starts from is measured before, in three jobs that are not among those it predicts: one
rank alone (computing), single messages on one link (alpha and beta), and one placement on that
link (how much of the all-reduce is hidden behind computing).

Of each measurement the least of the blocks counts, here and there: the model knows nothing of other
programs, and those only ever add time.
"""

from __future__ import annotations

import os
import statistics

from rich.console import Console
from rich.table import Table

from tools.bench import jobs
from workshop.measure.alpha_beta import HierarchicalLinks
from workshop.measure.step_time import Compute, at_bandwidth, step_seconds
from workshop.output import events
from workshop.paths import DEMOS

CALIBRATED_MBIT = 200
MBITS = (100, 300, 800)
PLACEMENTS = ((2, 1), (2, 2), (4, 1))  # instances, ranks on each
HIDDEN_UNITS = (512, 1536, 4096)  # 1.1, 3.2 and 8.6 MB of gradients; the middle one only here
IMAGES = 64  # of each rank
MIN_BLOCKS = 5
OVERLAPS = [share / 20 for share in range(21)]
SCRIPT = "measure_steps.py"
LINK = "8,65536,1048576"  # bytes of the single messages


def run(runs: int) -> None:
    """Measure and print. runs: blocks of each step, at least 5."""
    blocks = max(runs, MIN_BLOCKS)
    with jobs.emulator() as (emulated, _):

        def measure(mbit: int, instances: int, ranks: int, **parameters) -> list[dict]:
            script = SCRIPT if "hidden-units" in parameters else "measure_all_reduce.py"
            lines = emulated.run(
                DEMOS / script,
                instances=instances,
                processes=ranks,
                links=f"{mbit}mbit",
                blocks=blocks,
                **parameters,
            )
            records = [*events(lines, "steps"), *events(lines, "link")]
            return [record | {"seconds": [min(record["seconds"])]} for record in records]

        sizes = ",".join(map(str, HIDDEN_UNITS))
        ends = f"{HIDDEN_UNITS[0]},{HIDDEN_UNITS[-1]}"
        alone = measure(CALIBRATED_MBIT, 1, 1, **{"hidden-units": ends, "images": "32,96"})
        compute = Compute.from_measurements(alone)
        links = measure(
            CALIBRATED_MBIT, 2, 2, algorithms="gloo", bytes=1024, **{"link-bytes": LINK}
        )
        tiers = HierarchicalLinks.from_measurements(links)
        known = measure(CALIBRATED_MBIT, 2, 2, **{"hidden-units": sizes, "images": IMAGES})
        overlap = best_overlap(known, compute, tiers)
        print(f"\n{compute}\n{tiers}\noverlap {overlap:.2f}", flush=True)
        rows = []
        for mbit in MBITS:
            for instances, ranks in PLACEMENTS:
                model = {"hidden-units": sizes, "images": IMAGES}
                for record in measure(mbit, instances, ranks, steps=1, **model):
                    place = {"instances": instances, "ranks_per_instance": ranks}
                    predicted = predict(record, compute, tiers, overlap, 1e6 * mbit, **place)
                    rows.append((mbit, f"{instances} x {ranks}", record, predicted))
                print(f"{mbit} Mbit/s, {instances} x {ranks}: measured", flush=True)
    print_rows(rows)


def predict(record: dict, compute, tiers, overlap: float, rate: float | None, **place) -> float:
    """Seconds of the step that a "steps" record has measured."""
    return step_seconds(
        compute,
        record["images"],
        record["gradient_bytes"],
        "gloo",
        at_bandwidth(tiers, rate),
        overlap=overlap,
        cores=os.cpu_count() or 1,
        **place,
    )


def best_overlap(records: list[dict], compute: Compute, tiers: HierarchicalLinks) -> float:
    """The overlap with which these measured steps of 2 x 2 ranks are predicted best."""
    place = {"instances": 2, "ranks_per_instance": 2}

    def error(overlap: float) -> float:
        rate = CALIBRATED_MBIT * 1e6
        errors = []
        for record in records:
            predicted = predict(record, compute, tiers, overlap, rate, **place)
            errors.append(abs(predicted / record["seconds"][0] - 1))
        return statistics.median(errors)

    return min(OVERLAPS, key=error)


def print_rows(rows: list[tuple]) -> None:
    """Each measured step beside its prediction, and the median error."""
    table = Table("Mbit/s", "placement", "MB", "predicted, ms", "measured, ms", "off")
    errors = []
    for mbit, placement, record, predicted in rows:
        (measured,) = record["seconds"]
        errors.append(abs(predicted / measured - 1))
        ms = [f"{1000 * seconds:.0f}" for seconds in (predicted, measured)]
        size = f"{record['gradient_bytes'] / 1e6:.1f}"
        table.add_row(str(mbit), placement, size, *ms, f"{predicted / measured - 1:+.0%}")
    Console(width=100).print(table)
    print(f"{len(rows)} steps: median error {statistics.median(errors):.0%} (bound 15%)")
