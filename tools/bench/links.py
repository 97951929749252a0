"""All-reduces on links that were not measured before, beside what the cost model predicts.

Each rate and layout is one job of scripts/demos/measure_all_reduce.py. The first job's messages
give alpha and beta, and all all-reduces are predicted from these alone
(workshop/measure/held_out.py).
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from tools.bench import jobs
from workshop.measure import held_out
from workshop.output import events
from workshop.paths import DEMOS

PLACED = "gloo,ring,interleaved_ring,hierarchical,mini_herring"
FLAT = "gloo,naive,tree,ring"  # with one rank on each instance the others are rings
SIZES = "1000000,4000000"
# mbit, latency in ms, instances, ranks on each, algorithms, bytes
JOBS = (
    (200, 0, 2, 4, PLACED, SIZES),
    (100, 0, 2, 4, PLACED, SIZES),
    (400, 0, 2, 4, PLACED, "1000000,4000000,8000000"),
    (200, 0, 2, 2, PLACED, SIZES),
    (400, 0, 2, 2, PLACED, SIZES),
    (200, 0, 4, 2, PLACED, SIZES),
    (200, 0, 4, 1, FLAT, SIZES),
    (100, 0, 4, 1, FLAT, SIZES),
    (200, 0, 2, 1, "gloo,ring", "250000,1000000,8000000"),
    (200, 1, 2, 4, PLACED, SIZES),
)
MIN_BLOCKS = 5


def run(runs: int) -> dict[str, Any]:
    """Measure and print. runs: blocks of each all-reduce, at least 5. Returns all records."""
    measured: list[dict] = []
    with jobs.emulator() as emulated:
        for job in JOBS:
            if job[1] and not jobs.can_delay():
                print("1 ms: not measured, this kernel has no netem", flush=True)
                continue
            measured.append(measure(emulated, job, max(runs, MIN_BLOCKS)))
            print(f"{jobs.link_words(*job[:2])}, {job[2]} x {job[3]}: measured", flush=True)
    report(held_out.all_reduces(measured))
    return {"jobs": measured}


def measure(emulated: jobs.Jobs, job: tuple, blocks: int) -> dict:
    """Run a job; what held_out.all_reduces needs of it."""
    mbit, latency_ms, instances, ranks, algorithms, sizes = job
    lines = emulated.run(
        DEMOS / "measure_all_reduce.py",
        instances=instances,
        processes=ranks,
        links=jobs.link_words(mbit, latency_ms),
        algorithms=algorithms,
        bytes=sizes,
        blocks=blocks,
    )
    kinds = ("placement", "link", "add", "all_reduce")
    about = {"mbit": mbit, "latency_ms": latency_ms}
    about |= {"instances": instances, "ranks_per_instance": ranks}
    return about | {"events": [event for kind in kinds for event in events(lines, kind)]}


def report(points) -> None:
    """Each measurement beside its prediction; then the summary and the wrong winners."""
    table = Table("what", "predicted, ms", "measured, ms", "off")
    for point in points.to_dict("records"):
        ms = [f"{1000 * point[name]:.0f}" for name in ("predicted", "measured")]
        table.add_row(held_out.name_of(point), *ms, f"{point['error']:+.0%}")
    Console(width=100).print(table)
    print(held_out.summary(points))
    for row in held_out.wrong_winners(points).to_dict("records"):
        words = "{where}: the model says {predicted}, {measured} was faster, {slower:.2f} times"
        print("wrong winner: " + words.format(**row))
