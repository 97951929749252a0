"""Wait for a condition, or for processes to end; fail the test where that takes too long."""

import time
from collections.abc import Callable, Iterable

import psutil


def until(condition: Callable[[], object], seconds: float = 90) -> None:
    """Wait until `condition()` is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def wait_until_gone(pids: Iterable[int], seconds: float = 60) -> None:
    for pid in pids:
        until(lambda pid=pid: gone(pid), seconds)


def gone(pid: int) -> bool:
    """Whether a process has ended, even if nobody has reaped it."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
