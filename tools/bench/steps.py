"""Steps of training that the model of lesson 07 predicts: links x ranks x sizes of the model.

What it starts from is measured before, in jobs that are not among those it predicts: single
messages (alpha, beta), and one rank alone (computing, and how much of it is left when the gradients
are ready).

Of each step the least of the blocks counts, here and there: the model knows nothing of other
programs, and those only ever add time.
"""

from __future__ import annotations

import os
from typing import Any

from tools.bench import jobs, links
from workshop.measure import held_out
from workshop.output import events
from workshop.paths import DEMOS

MBITS = (100, 300, 800)
PLACEMENTS = ((2, 1), (2, 2), (4, 1))  # instances, ranks on each
HIDDEN_UNITS = "512,1536,4096"  # 1.1, 3.2 and 8.6 MB of gradients; the middle one only here
ENDS = "512,4096"
IMAGES = 64  # of each rank
MIN_BLOCKS = 5


def run(runs: int) -> dict[str, Any]:
    """Measure and print. runs: blocks of each step, at least 5. Returns all records."""
    blocks = max(runs, MIN_BLOCKS)
    with jobs.emulator() as emulated:

        def train(mbit: int, instances: int, ranks: int, sizes: str, images: str) -> list[dict]:
            lines = emulated.run(
                DEMOS / "measure_steps.py",
                instances=instances,
                processes=ranks,
                links=jobs.link_words(mbit),
                blocks=blocks,
                images=images,
                **{"hidden-units": sizes},  # type: ignore[arg-type]
            )
            return events(lines, "steps")

        measured = [links.measure(emulated, (*links.JOBS[0][:4], "gloo", 1024), blocks)]
        alone = train(200, 1, 1, ENDS, "32,96")
        for mbit in MBITS:
            for instances, ranks in PLACEMENTS:
                records = train(mbit, instances, ranks, HIDDEN_UNITS, str(IMAGES))
                about = {"mbit": mbit, "latency_ms": 0}
                about |= {"instances": instances, "ranks_per_instance": ranks}
                measured.append(about | {"events": records})
                print(f"{mbit} Mbit/s, {instances} x {ranks}: measured", flush=True)
    cores = os.cpu_count() or 1
    links.report(held_out.steps(measured, alone, cores))
    return {"jobs": measured, "alone": alone, "cores": cores}
