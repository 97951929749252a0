"""Which processes ranks are, and whether they have ended."""

import time


def pids_of(lines):
    return [int(line.text.split()[1]) for line in lines if line.text.startswith("pid ")]


def wait_until_gone(pids):
    deadline = time.monotonic() + 20
    for pid in pids:
        while _alive(pid):
            assert time.monotonic() < deadline, f"rank {pid} is still there"
            time.sleep(0.1)


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
