"""How long a job takes to reach its script, more than starting that script by hand.

The script prints the time as its first statement. By hand is `python script.py`, and
`mpirun -np N python -m mpi4py script.py` for MPI jobs: the same processes, on this machine
and without an emulator.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tools.bench import jobs

SCRIPT = "import time; print('FIRST', time.time(), flush=True)\n"
BOUND_SECONDS = 2.0


def run(runs: int) -> None:
    """Measure and print. runs: counted runs; one more goes before, uncounted."""
    with jobs.emulator() as (emulator, folder):
        _measure(runs, emulator, folder)


def _measure(runs: int, emulator: jobs.JobsEmulator, folder: Path) -> None:
    script = folder / "first.py"
    script.write_text(SCRIPT)
    source = emulator.put_source("source.tar.gz", {"first.py": SCRIPT.encode()})
    mpirun = str(Path(sys.executable).parent / "mpirun")
    mpi = [mpirun, "--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE", "-np", "2"]
    mpi += [sys.executable, "-m", "mpi4py"]
    rows = [("1 instance", 1, None, [sys.executable]), ("2 instances", 2, None, [sys.executable])]
    rows += [("2 instances, mpi", 2, 1, mpi)]
    table = Table(
        "job", "by hand, s", "as a job, s", "more, s", "ratio", f"bound {BOUND_SECONDS} s"
    )
    for title, count, per_host, command in rows:
        hand, job = [], []
        for number in range(runs + 1):  # in turn, so that a busy minute hits both
            hand.append(_by_hand([*command, str(script)]))
            name = f"bench-{count}-{per_host or 0}-{number}"
            begun = time.time()
            lines = emulator.run(name, source, "first.py", instances=count, processes=per_host)
            job.append(max(_times(lines)) - begun)
        a, b = statistics.median(hand[1:]), statistics.median(job[1:])
        verdict = "within" if b - a <= BOUND_SECONDS else "over"
        table.add_row(title, f"{a:.2f}", f"{b:.2f}", f"{b - a:.2f}", f"{b / a:.1f}", verdict)
    Console(width=100).print(table)
    print(f"medians of {runs}; with several processes, the last one's first line counts")


def _by_hand(command: list[str]) -> float:
    begun = time.time()
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return max(_times(said.splitlines())) - begun


def _times(lines: list[str]) -> list[float]:
    return [float(line.split("FIRST ")[1]) for line in lines if "FIRST " in line]
