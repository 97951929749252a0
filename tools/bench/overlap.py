"""How much of the all-reduce DDP hides: bandwidth of the link x size of the buckets.

Two instances with one rank each train a ResNet (scripts/demos/show_overlap.py), in a job for each
rate.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from tools.bench import jobs
from workshop.measure import overlap
from workshop.output import events
from workshop.paths import DEMOS, TRAIN

MBITS = (500, 1000, 2000, 4000, 8000)
BUCKETS = "1,5,25"  # MiB; beside them DDP's own limits, and one bucket
MIN_BLOCKS = 5


def run(runs: int) -> dict[str, Any]:
    """Measure and print. runs: steps of each setting, at least 5. Returns the seconds by rate."""
    measured: list[dict[str, Any]] = []
    with jobs.emulator() as emulated:
        for mbit in MBITS:
            lines = emulated.run(
                DEMOS / "show_overlap.py",
                instances=2,
                processes=1,
                links=jobs.link_words(mbit),
                also=TRAIN / "train_torch_fsdp.py",
                blocks=max(runs, MIN_BLOCKS),
                **{"bucket-megabytes": BUCKETS},
            )
            seconds = {event["setting"]: event["seconds"] for event in events(lines, "steps")}
            measured.append({"mbit": mbit, "seconds": seconds})
            print(f"{mbit} Mbit/s: measured", flush=True)
    table = Table("Mbit/s", "most", *overlap.hidden(measured[0]["seconds"]))
    for job in measured:
        hidden = overlap.hidden(job["seconds"]).values()
        most = overlap.most_hidden(job["seconds"])
        table.add_row(str(job["mbit"]), f"{most:.0%}", *(f"{part:.0%}" for part in hidden))
    Console(width=100).print(table)
    return {"jobs": measured}
