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
MPIRUN = [str(Path(sys.executable).with_name("mpirun")), "--allow-run-as-root", "-np", "2"]
MPIRUN += ["--map-by", ":OVERSUBSCRIBE", sys.executable, "-m", "mpi4py"]
# title, instances, ranks by mpirun on each, by hand
ROWS = [
    ("1 instance", 1, 0, [sys.executable]),
    ("2 instances", 2, 0, [sys.executable]),
    ("2 instances, mpi", 2, 1, MPIRUN),
]


def run(runs: int) -> None:
    """Measure and print. runs: counted runs; another goes before, uncounted."""
    table = Table("job", "by hand, s", "as a job, s", "more, s", "ratio", f"bound {BOUND_SECONDS}")
    with jobs.emulator() as (emulated, folder):
        script = folder / "source" / "first.py"
        script.parent.mkdir()
        script.write_text(SCRIPT)
        for title, instances, processes, command in ROWS:
            by_hand, as_job = [], []
            for _ in range(runs + 1):  # in turn, so that a busy minute hits both
                begin = time.time()
                done = subprocess.run(
                    [*command, script], capture_output=True, text=True, check=True
                )
                by_hand.append(_last(done.stdout.splitlines()) - begin)
                begin = time.time()
                lines = emulated.run(script, instances=instances, processes=processes)
                as_job.append(_last(lines) - begin)
            a, b = statistics.median(by_hand[1:]), statistics.median(as_job[1:])
            verdict = "within" if b - a <= BOUND_SECONDS else "over"
            table.add_row(title, f"{a:.2f}", f"{b:.2f}", f"{b - a:.2f}", f"{b / a:.1f}", verdict)
    Console(width=100).print(table)
    print(f"medians of {runs}; with several processes, the last one's first line counts")


def _last(lines: list[str]) -> float:
    return max(float(line.split("FIRST ")[1]) for line in lines if "FIRST " in line)
