"""Commands under a supervisor: what they print, how they end, and that nothing is left of them."""

import os
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest
from emulator_harness import gone, python, until, wait_until_gone

import local_sagemaker


class Running:
    """Commands under a supervisor, and what it told of them; ended at the end of a `with`."""

    def __init__(self, *commands: list, environments: list | None = None, **options) -> None:
        self.count, self.events = len(commands), []
        environments = environments or [{}] * self.count
        self.supervisor = local_sagemaker.supervise(
            commands, environments, self.events.append, **options
        )
        self.thread = threading.Thread(target=self.supervisor.run)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.supervisor.stop()
        self.thread.join()

    @property
    def lines(self) -> list[tuple[int, str]]:
        logs = [event for event in self.events if event["event"] == "log"]
        return [(int(event["host"]), line) for event in logs for line in event["lines"]]

    def status(self, index: int) -> int | None:
        return self.supervisor.statuses.get(str(index))

    def until_it_ends(self) -> None:
        until(lambda: not self.thread.is_alive())


# Starts a process in a session of its own, which outlives it unless somebody looks for it.
STARTS_ANOTHER = (
    "import subprocess, sys, time\n"
    "other = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], "
    "start_new_session=True)\n"
    "print(other.pid, flush=True); time.sleep(600)"
)


def test_lines_statuses_folders_and_variables(tmp_path):
    commands = [
        python("import os; print(os.getcwd(), os.environ['X'])"),
        python("import sys; print('bad', file=sys.stderr); sys.exit(3)"),
        python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"),
        ["no-such-program"],
    ]
    variables = [{"X": "here"}, {}, {}, {}]
    with Running(*commands, environments=variables, folder=str(tmp_path)) as running:
        running.until_it_ends()
    assert [running.status(index) for index in range(4)] == [0, 3, -signal.SIGKILL, 127]
    assert {(0, f"{tmp_path} here"), (1, "bad")} <= {*running.lines}
    assert any(index == 3 and "could not be started" in line for index, line in running.lines)


def test_one_that_fails_leaves_the_others_alone():
    with Running(python("raise SystemExit(1)"), python("import time; time.sleep(600)")) as running:
        until(lambda: running.status(0) == 1)
        time.sleep(1)
        assert running.status(1) is None
    wait_until_gone([running.supervisor.pids["1"]])


def test_descriptors_and_uncaptured_output(capfd):
    source, sink = os.pipe()
    command = python(f"import os; os.write({sink}, b'x'); print('aloud')")
    with Running(command, descriptors=[[sink]], captured=False) as running:
        os.close(sink)
        assert os.read(source, 10) == b"x" and os.read(source, 10) == b""
        running.until_it_ends()
    os.close(source)
    assert "aloud" in capfd.readouterr().out


@pytest.mark.parametrize("stopped", [False, True])
def test_the_end_takes_what_they_started_along(stopped):
    with Running(python(STARTS_ANOTHER)) as running:
        until(lambda: running.lines)
        if stopped:
            os.kill(running.supervisor.pids["0"], signal.SIGSTOP)
    assert gone(running.supervisor.pids["0"]) and gone(int(running.lines[0][1]))


PARENT = """
import sys
import local_sagemaker
def show(event): print(*event.get("lines", []), event.get("pid", ""), flush=True)
running = local_sagemaker.supervise([[sys.executable, "-c", sys.argv[1]]], [{}], show)
print(running.process.pid, flush=True)
running.run()
"""


@pytest.mark.parametrize("victim", ["the parent", "the supervisor"])
def test_nothing_outlives(victim):
    command = [sys.executable, "-c", PARENT, STARTS_ANOTHER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        numbers = [int(word) for _ in range(3) for word in parent.stdout.readline().split()]
        assert len(numbers) == 3
        if victim == "the parent":
            parent.kill()
        else:
            *pids, supervisor = sorted(numbers, key=lambda pid: "supervisor" in str(cmdline(pid)))
            os.kill(supervisor, signal.SIGKILL)
            numbers = pids
        try:
            wait_until_gone(numbers)
        finally:
            parent.kill()


def cmdline(pid: int) -> list[str]:
    return psutil.Process(pid).cmdline()
