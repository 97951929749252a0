"""Start a training of several processes, kill one of them in the middle, wait for the rest."""

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from script_harness import Run

# After one process was killed all others must end. Within 30 s, says `make soak`, which wants a
# machine of its own; here a hang is what has to be found, on a machine that may be busy.
END_SECONDS = 120.0
START_SECONDS = 240.0  # processes that import TensorFlow, on a machine that may be busy


def cut_off(
    command: list, env: dict, log: Path, victim: Callable[[dict], bool], step: int
) -> Run | None:
    """Kill the process whose environment `victim` picks once `step` was printed; see the end.

    Returns None if the command was faster: it had ended well before it could be killed.

    log: a file for all that the command prints. Fails if the command outlives END_SECONDS.
    """
    with log.open("w") as output:
        launcher = subprocess.Popen(list(map(str, command)), env=env, stdout=output, stderr=output)
    try:
        _wait_for(lambda: last_step(log) > 0 or launcher.poll() is not None, START_SECONDS, log)
        target = _find(launcher.pid, victim)
        _wait_for(lambda: last_step(log) >= step or launcher.poll() is not None, 240, log)
        if target is None or not _killed(target):
            assert launcher.wait(END_SECONDS) == 0, _end_of(log)
            return None
        try:
            code = launcher.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{END_SECONDS} s later it still runs:\n{_end_of(log)}") from None
    finally:
        for process in _descendants(launcher.pid):
            _killed(process)
        launcher.kill()
        launcher.wait()
    return Run(code, log.read_text(), "")


def last_step(log: Path) -> int:
    """The last step that the log tells; 0 if none."""
    steps = [one["step"] for one in records(log.read_text()) if one["event"] == "step"]
    return max(steps, default=0)


def records(text: str) -> list[dict]:
    """The JSON lines of a log, whole ones only: a killed process may have left a part of one."""
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return found


def _find(launcher: int, victim: Callable[[dict], bool]) -> psutil.Process | None:
    for process in _descendants(launcher):
        try:
            if victim(process.environ()):
                return process
        except psutil.Error:  # it has just ended
            continue
    return None


def _killed(process: psutil.Process) -> bool:
    """Kill it; whether it was still there."""
    try:
        running = process.status() != psutil.STATUS_ZOMBIE
        process.send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        return False
    return running


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _wait_for(condition: Callable[[], bool], seconds: float, log: Path) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{seconds} s were not enough:\n{_end_of(log)}"
        time.sleep(0.02)


def _end_of(log: Path) -> str:
    return log.read_text()[-3000:]
