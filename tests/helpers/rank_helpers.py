"""Which processes ranks are, and whether they have ended."""

import re
import time


def pids_of(lines):
    """The ids in lines like "pid 123". A line that the end of mpirun cut short has none."""
    matches = [re.fullmatch(r"pid (\d+)", line.text) for line in lines]
    return [int(match[1]) for match in matches if match]


def wait_until_gone(pids):
    deadline = time.monotonic() + 60
    for pid in pids:
        while _alive(pid):
            assert time.monotonic() < deadline, f"process {pid} is still there"
            time.sleep(0.1)


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
