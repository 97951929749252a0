"""`mpirun` for a notebook: real ranks, what they say, and that none is ever left behind."""

import os
import re
import signal
import subprocess
import sys

import psutil
import pytest
from emulator_harness import wait_until_gone

from workshop.launch import delayed_link
from workshop.launch.mpirun import as_typed, full_words, line_from_mpirun, mpirun, mpirun_command
from workshop.launch.processes import Processes, ProcessFailed

RANK = "int(os.environ['OMPI_COMM_WORLD_RANK'])"


def python(text):
    return "python", "-c", f"import os, signal, sys, time; rank = {RANK}; {text}"


def pids_of(lines):
    """The ids in lines like "pid 123". A line that the end of mpirun cut short has none."""
    matches = [re.fullmatch(r"pid (\d+)", line.text) for line in lines]
    return [int(match[1]) for match in matches if match]


SLEEP = "print('pid', os.getpid(), flush=True); time.sleep(600)"


def test_each_line_is_shown_with_its_rank_and_records_become_a_table(capsys):
    say = 'print(\'{"event": "x", "value": %d}\' % (10 * rank))'
    text = f"{say}; print('I am', rank, os.environ['COLOUR']); print('oops', file=sys.stderr)"
    done = mpirun(3, *python(text), COLOUR="green")
    assert [line.text for line in done.lines if line.error] == ["oops"] * 3
    out = capsys.readouterr().out
    assert out.startswith("$ COLOUR=green mpirun -np 3 ")
    assert "[1] I am 1 green\n" in out and "[2] oops\n" in out
    table = done.table("x")
    assert table["rank"].tolist() == [0, 1, 2] and table["value"].tolist() == [0, 10, 20]
    with pytest.raises(ValueError, match=r"The ranks printed no 'y' records.*\['x'\]"):
        done.table("y")


def test_only_the_command_is_shown_if_so_asked(capsys):
    mpirun(1, "python", "-c", "print('I am here')", show=False)
    assert capsys.readouterr().out == "$ mpirun -np 1 python -c \"print('I am here')\"\n"


def test_lines_of_several_ranks_do_not_mix():
    done = mpirun(2, *python("[print(rank, 'x' * 300) for _ in range(500)]"), show=False)
    expected = {0: "0 " + "x" * 300, 1: "1 " + "x" * 300}
    assert len(done.lines) == 1000
    assert all(line.text == expected[line.rank] for line in done.lines)


def test_a_rank_that_fails_is_named_with_its_last_words():
    with pytest.raises(ProcessFailed, match="rank 1 ended with exit status 3") as caught:
        mpirun(2, *python("print('bye', rank); rank and sys.exit(3); time.sleep(600)"), show=False)
    assert "mpirun then ended the others" in str(caught.value)
    assert "[1] bye 1" in str(caught.value) and "bye 0" not in str(caught.value)


@pytest.mark.parametrize(
    "command, message",
    [
        (
            python("rank and os.kill(os.getpid(), 9); time.sleep(600)"),
            "rank 1 was killed by signal 9",
        ),
        (["no-such-program"], r"(?s)unable to find.*no-such-program"),
    ],
)
def test_a_rank_that_is_killed_and_a_program_that_is_missing_are_named(command, message):
    with pytest.raises(ProcessFailed, match=message):
        mpirun(2, *command, show=False)


NOTEBOOK = f"""
from workshop.launch.mpirun import mpirun
mpirun(2, "python", "-c", "import os, time; {SLEEP}")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_rank_outlives_an_interrupted_or_killed_notebook(number):
    notebook = subprocess.Popen(
        [sys.executable, "-c", NOTEBOOK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    pids = []
    while len(pids) < 2:
        line = notebook.stdout.readline()
        assert line, notebook.stderr.read()
        if "] pid " in line:
            pids.append(int(line.split()[-1]))
    notebook.send_signal(number)
    _, errors = notebook.communicate(timeout=30)
    wait_until_gone(pids)
    assert ("Interrupted. All processes it had started have ended." in errors) == (
        number == signal.SIGINT
    )


def test_ranks_of_an_mpirun_that_died_are_ended_too():
    command = mpirun_command(2, full_words(python(SLEEP)))
    running = Processes([command], line_from=line_from_mpirun)
    assert running.until(lambda: len(pids_of(running.lines)) == 2, timeout=60)
    assert running.alive
    pids = pids_of(running.lines)
    psutil.Process(pids[0]).parent().kill()  # mpirun
    with pytest.raises(ProcessFailed):
        running.wait(timeout=30)
    wait_until_gone(pids)


def test_root_alone_gets_the_option_for_root(monkeypatch):
    for user, expected in ((0, True), (1000, False)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        assert ("--allow-run-as-root" in mpirun_command(2, ["x"])) is expected


def test_without_mpirun_the_message_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="make setup"):
        mpirun_command(2, ["x"])


def test_the_command_is_shown_as_one_would_type_it():
    words = [sys.executable, "/somewhere/train.py", "--name", "two words"]
    shown = as_typed(["/bin/mpirun", "-np", "2", *words], {"TRACE": "/tmp/abc/trace.json"})
    assert shown == 'TRACE=trace.json mpirun -np 2 python train.py --name "two words"'


def test_a_senseless_call_is_refused():
    for count in (0, 65):
        with pytest.raises(ValueError, match="1 to 64"):
            mpirun(count, "python", "-V")
    with pytest.raises(ValueError, match="needs a command"):
        mpirun(2)


needs_link = pytest.mark.skipif(
    delayed_link.unavailable_reason() is not None, reason=str(delayed_link.unavailable_reason())
)
BACK_AND_FORTH = """
from mpi4py import MPI; import json, time
ranks = MPI.COMM_WORLD
ranks.barrier()
times = []
for _ in range(5):
    began = time.perf_counter(); ranks.allreduce(1); times.append(time.perf_counter() - began)
print(json.dumps({"event": "times", "least": min(times)}))
"""


@needs_link
def test_each_message_takes_at_least_the_latency():
    done = mpirun(2, "python", "-c", BACK_AND_FORTH, show=False, latency=0.02)
    assert done.table("times")["least"].min() >= 0.02


@needs_link
def test_the_status_of_the_command_is_passed_on():
    command = [sys.executable, "-c", "import sys; sys.exit(7)"]
    assert subprocess.run(delayed_link.through(command, 0)).returncode == 7


def test_a_machine_that_cannot_is_told(monkeypatch):
    monkeypatch.setattr(delayed_link, "NAMESPACE", ["no-such-program"])
    delayed_link.unavailable_reason.cache_clear()
    try:
        assert "No delayed link" in delayed_link.unavailable_reason()
    finally:
        delayed_link.unavailable_reason.cache_clear()
