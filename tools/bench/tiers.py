"""Two tiers against gloo's ring: 8 MiB on 2 instances of 4 ranks, 200 Mbit/s, in several jobs.

Blocks are of one job, and another job's times differ by some per cent: so jobs are repeated. "gloo
again" is gloo a second time, so its ratio to gloo is the noise.
"""

from __future__ import annotations

import statistics
from typing import Any

from tools.bench import jobs, links

MBIT, INSTANCES, RANKS = 200, 2, 4
ALGORITHMS = "gloo,gloo again,ring,hierarchical"
BYTES = 8 * 2**20
JOBS = 5
MIN_BLOCKS = 5


def run(runs: int) -> dict[str, Any]:
    """Measure and print. runs: blocks in each job, at least 5. Returns the seconds by job."""
    job = (MBIT, 0, INSTANCES, RANKS, ALGORITHMS, BYTES)
    measured = []
    with jobs.emulator() as emulated:
        for number in range(1, JOBS + 1):
            records = links.measure(emulated, job, max(runs, MIN_BLOCKS))["events"]
            seconds = {
                event["algorithm"]: event["seconds"]
                for event in records
                if event["event"] == "all_reduce"
            }
            measured.append(seconds)
            two_tiers = ratio(seconds, "gloo", "hierarchical")
            noise = ratio(seconds, "gloo", "gloo again")
            print(f"job {number}: {two_tiers:.2f} (gloo again: {noise:.2f})", flush=True)
    ratios = [ratio(seconds, "gloo", "hierarchical") for seconds in measured]
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    print(f"median of {JOBS} jobs: {statistics.median(ratios):.2f} ({spread}); by bytes 1.75")
    return {"jobs": measured, "bytes": BYTES, "mbit": MBIT}


def ratio(seconds: dict[str, list[float]], slower: str, faster: str) -> float:
    """The median over the blocks of one algorithm's seconds by another's."""
    pairs = zip(seconds[slower], seconds[faster], strict=True)
    return statistics.median(slow / fast for slow, fast in pairs)
