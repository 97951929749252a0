"""Commands under a supervisor: what they print, how they end, and that nothing is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from local_sagemaker import Command, SupervisedProcesses


def python(code: str, **options) -> Command:
    return Command([sys.executable, "-c", code], **options)


def gone(pid: int, seconds: float = 30) -> bool:
    """Whether a process ends within `seconds`."""
    deadline = time.monotonic() + seconds
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


# Starts a process in a session of its own, which outlives it unless somebody looks for it.
STARTS_ANOTHER = (
    "import subprocess, sys, time\n"
    "other = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], "
    "start_new_session=True)\n"
    "print(other.pid, flush=True); time.sleep(600)"
)


def test_lines_statuses_folders_and_variables(tmp_path):
    lines = []
    commands = [
        python("import os; print(os.getcwd(), os.environ['X'])", folder=str(tmp_path)),
        python("import sys; print('bad', file=sys.stderr); sys.exit(3)"),
        python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"),
        Command(["no-such-program"]),
    ]
    commands[0].environment = {"X": "here"}
    with SupervisedProcesses(commands, lambda index, line: lines.append((index, line))) as running:
        assert running.until(lambda: False, 60) and running.over
    assert running.statuses == [0, 3, -signal.SIGKILL, 127]
    assert (0, f"{tmp_path} here") in lines and (1, "bad") in lines
    assert any(index == 3 and "could not be started" in line for index, line in lines)


def test_one_that_fails_leaves_the_others_alone():
    commands = [python("raise SystemExit(1)"), python("import time; time.sleep(600)")]
    with SupervisedProcesses(commands) as running:
        assert running.until(lambda: running.statuses[0] == 1, 60)
        assert not running.until(lambda: running.statuses[1] is not None, 1)
    assert running.over and gone(running.pids[1])


def test_descriptors_and_uncaptured_output(capfd):
    source, sink = os.pipe()
    command = python(f"import os; os.write({sink}, b'x'); print('aloud')", captured=False)
    command.descriptors = [sink]
    with SupervisedProcesses([command]) as running:
        os.close(sink)
        assert os.read(source, 10) == b"x" and os.read(source, 10) == b""
        assert running.until(lambda: False, 60)
    os.close(source)
    assert "aloud" in capfd.readouterr().out


@pytest.mark.parametrize("stopped", [False, True])
def test_the_end_takes_what_they_started_along(stopped):
    lines = []
    with SupervisedProcesses(
        [python(STARTS_ANOTHER)], lambda index, line: lines.append(line), grace_seconds=1
    ) as running:
        assert running.until(lambda: lines, 60)
        if stopped:
            os.kill(running.pids[0], signal.SIGSTOP)
    assert gone(running.pids[0], 0) and gone(int(lines[0]), 0)


PARENT = """
import sys, time
from local_sagemaker import Command, SupervisedProcesses
command = Command([sys.executable, "-c", sys.argv[1]])
running = SupervisedProcesses([command], lambda index, line: print(line, flush=True))
running.until(lambda: running.pids[0], 60)
print(running.pids[0], running.supervisor.process.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("victim", ["the parent", "the supervisor"])
def test_nothing_outlives(victim):
    command = [sys.executable, "-c", PARENT, STARTS_ANOTHER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        numbers = [int(word) for _ in range(2) for word in parent.stdout.readline().split()]
        assert len(numbers) == 3
        if victim == "the parent":
            parent.kill()
        else:
            *pids, supervisor = sorted(numbers, key=lambda pid: "supervisor" in str(cmdline(pid)))
            os.kill(supervisor, signal.SIGKILL)
            numbers = pids
        try:
            assert all(gone(pid) for pid in numbers)
        finally:
            parent.kill()


def cmdline(pid: int) -> list[str]:
    return psutil.Process(pid).cmdline()
