"""`workshop break`: the list, the exit statuses, an interrupt; what is told of a failure."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from workshop import failures
from workshop.failures.reproduction import CheckResult, Failure

START_SECONDS = 120


@pytest.fixture
def made(monkeypatch):
    """Puts one failure, "made-up", in the place of all; takes what its reproduction returns."""

    def put(result: CheckResult) -> None:
        failure = Failure("made-up", "a & b", "c", "d", "02", 1, lambda fixed: result)
        monkeypatch.setattr(failures, "ALL", {"made-up": failure})

    return put


def test_without_a_name_all_are_listed(command):
    status, output = command("break")
    assert status == 0
    for name in failures.ALL:
        assert f"\n{name} " in "\n" + output


@pytest.mark.parametrize(
    ("failed", "fixed", "code", "words"),
    [
        (True, [], 0, "line of the log  the line <1>"),
        (False, [], 1, "it did not break as described"),
        (False, ["--fixed"], 0, "fixed: it did not fail"),
        (True, ["--fixed"], 1, "fixed, and it still failed"),
    ],
)
def test_exit_status(command, made, failed, fixed, code, words):
    made(CheckResult(failed, "the line <1>"))
    status, output = command("break", "made-up", *fixed)
    assert status == code and words in output and "the line <1>" in output


def test_what_this_machine_cannot_try_is_said(command, made):
    made(CheckResult(False, impossible="no namespaces."))
    status, output = command("break", "made-up")
    assert status == 2 and "cannot be tried here: no namespaces." in output
    assert not failures.reproduce("made-up", fixed=True).as_described


def test_an_interrupt_ends_all_ranks():
    command = [sys.executable, "-m", "workshop.cli", "break", "rank-hangs"]
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ
    )
    everything: list[psutil.Process] = []
    try:
        deadline = time.monotonic() + START_SECONDS
        while len([child for child in everything if "break_training.py" in _words(child)]) < 3:
            assert time.monotonic() < deadline and running.poll() is None
            time.sleep(0.1)
            everything = psutil.Process(running.pid).children(recursive=True)
        running.send_signal(signal.SIGINT)
        output, _ = running.communicate(timeout=START_SECONDS)
        assert running.returncode == 130 and "Everything that was started has been ended" in output
        _, left = psutil.wait_procs(everything, timeout=30)
        assert left == []
    finally:
        running.kill()
        running.wait()


def _words(process: psutil.Process) -> str:
    """Its command line. mpirun's and each rank's name the script."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
