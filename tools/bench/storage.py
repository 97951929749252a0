"""S3 on this machine: does an object cost the same whether it is the first or the ten-thousandth?

Small objects, a file of a gigabyte up and down, and small objects while a job fills its log.
"""

from __future__ import annotations

import os
import re
import statistics
import threading
import time
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

import local_sagemaker
from tools.bench import jobs

GIGABYTE = 1024**3
MANY = 10_000
COUNTED = 100  # objects whose times are compared, at the beginning and at the end
SMALL = b"x" * 100
# About 50 MB of output a minute, for a minute.
CHATTY = """
import time
print("FIRST", flush=True)
for second in range(60):
    begun = time.time()
    for line in range(8000):
        print("x" * 100)
    time.sleep(max(0.0, 1 - (time.time() - begun)))
"""


def run(runs: int) -> None:
    """Measure and print. runs: not used; each row is one long run."""
    with jobs.emulator() as (emulator, folder):
        process = psutil.Process(local_sagemaker.running(folder / "state").pid)
        table = Table("what", "measured", "bound")
        _many(emulator, table)
        _large(emulator, process, folder, table)
        _while_a_job_prints(emulator, table)
        Console(width=100).print(table)


def _put(emulator: jobs.JobsEmulator, key: str) -> float:
    begun = time.perf_counter()
    emulator.s3.put_object(Bucket=jobs.BUCKET, Key=key, Body=SMALL)
    return time.perf_counter() - begun


def _many(emulator: jobs.JobsEmulator, table: Table) -> None:
    seconds = [_put(emulator, f"many/{number:06}") for number in range(MANY)]
    first = statistics.median(seconds[COUNTED : 2 * COUNTED])
    last = statistics.median(seconds[-COUNTED:])
    table.add_row(f"PUT of {len(SMALL)} bytes, the 100th, ms", f"{1000 * first:.2f}", "")
    table.add_row(f"PUT, the {MANY}th / the 100th", f"{last / first:.2f}", "1.5")


def _large(
    emulator: jobs.JobsEmulator, process: psutil.Process, folder: Path, table: Table
) -> None:
    path = folder / "large"
    with path.open("wb") as stream:
        for _ in range(GIGABYTE // 1024**2):
            stream.write(os.urandom(1024**2))
    had = _most_memory(process)
    begun = time.perf_counter()
    emulator.s3.upload_file(str(path), jobs.BUCKET, "large")
    up = time.perf_counter() - begun
    table.add_row("upload_file of 1 GB, s", f"{up:.1f}", "")
    table.add_row("more memory meanwhile, MB", f"{(_most_memory(process) - had) / 1e6:.0f}", "100")
    before = process.io_counters().read_chars
    begun = time.perf_counter()
    emulator.s3.download_file(jobs.BUCKET, "large", str(path))
    down = time.perf_counter() - begun
    read = process.io_counters().read_chars - before
    table.add_row("download_file of 1 GB, s", f"{down:.1f}", "")
    table.add_row("bytes read / bytes sent", f"{read / GIGABYTE:.3f}", "1.1")


def _most_memory(process: psutil.Process) -> int:
    """The most memory that a process has had at once, in bytes."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s*(\d+)", status)[1])


def _while_a_job_prints(emulator: jobs.JobsEmulator, table: Table) -> None:
    source = emulator.put_source("chatty.tar.gz", {"chatty.py": CHATTY.encode()})
    idle = statistics.median(_put(emulator, f"idle/{number}") for number in range(COUNTED))
    job = threading.Thread(
        target=emulator.run,
        args=("bench-chatty", source, "chatty.py"),
        kwargs={"instances": 1},
    )
    job.start()
    time.sleep(10)
    busy = statistics.median(_put(emulator, f"busy/{number}") for number in range(COUNTED))
    job.join()
    table.add_row("PUT while a job prints 50 MB a minute / idle", f"{busy / idle:.2f}", "2")
