"""`python -m tools.bench [NAME ...]`: run all benchmarks, or those that are named."""

from __future__ import annotations

import logging
import os
import signal
import sys

import click

from tools.bench import narrow_links
from workshop.lesson import reference_results

MEASURES = {
    "links": narrow_links.links,
    "steps": narrow_links.steps,
    "tiers": narrow_links.tiers,
    "overlap": narrow_links.overlap,
}
LESSON = "07"  # which shows the results


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(MEASURES)))
@click.option("--runs", type=click.IntRange(min=5), default=7, help="Blocks of each measurement.")
@click.option("--record", is_flag=True, help="Keep the results in notebooks/recorded/.")
def main(names: tuple[str, ...], runs: int, record: bool) -> None:
    """Measure and print: all benchmarks, or those that are named."""
    # So that an emulator and its jobs end with this program, however it is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    logging.disable(logging.INFO)  # the SDK's
    os.environ["SAGEMAKER_SUPPRESS_V2_WARNING"] = "1"
    for name in names or MEASURES:
        load = os.getloadavg()[0]
        print(f"\n{name}, {os.cpu_count()} cores, load {load:.1f} before the start")
        results = MEASURES[name](runs)
        if record:
            loads = [round(value, 1) for value in (load, os.getloadavg()[0])]
            path = reference_results.write(LESSON, name, {"load": loads, **results})
            print(f"kept in {path}")


if __name__ == "__main__":
    main(prog_name="python -m tools.bench")
