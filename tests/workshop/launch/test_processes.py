"""Scripts run as processes: their JSON lines, their errors, and nothing left of them."""

import os
import signal

import psutil
import pytest
from emulator_harness import python, until, wait_until_gone

from workshop.launch.processes import Processes, ProcessFailed, run_together


def test_the_json_lines_of_all_programs_in_order():
    say = 'print(\'hello\'); print(\'{"event": "a", "value": %d}\')'
    records = run_together(python(say % 1), python(say % 2))
    assert records == [{"event": "a", "value": 1}, {"event": "a", "value": 2}]


def test_an_error_is_told_with_its_last_lines():
    with pytest.raises(ProcessFailed, match=r"(?s)Exit status 3.*no such batch"):
        run_together(python("import sys; print('no such batch'); sys.exit(3)"))


def test_when_one_fails_all_end_with_what_they_started(tmp_path):
    note = tmp_path / "pid"
    starter = f"sleep 600 & echo $! > {note}.part; mv {note}.part {note}; wait"
    fail = f"until test -e {note}; do sleep 0.05; done; exit 1"
    with pytest.raises(ProcessFailed, match="Exit status 1"):
        run_together(["sh", "-c", starter], ["sh", "-c", fail])
    wait_until_gone([int(note.read_text())])


def test_a_program_that_does_not_end_is_given_up():
    with pytest.raises(ProcessFailed, match=r"After 0.5 s"):
        run_together(python("import time; time.sleep(600)"), timeout=0.5)


def test_a_command_of_a_killed_supervisor_is_ended_and_it_is_said():
    with Processes([python("import time; print(1, flush=True); time.sleep(600)")]) as processes:
        assert processes.until(lambda: processes.lines, timeout=60)
        pid = processes.pids[0]
        os.kill(psutil.Process(pid).ppid(), signal.SIGKILL)
        with pytest.raises(ProcessFailed, match="Their supervisor was killed"):
            processes.wait(timeout=60)
    wait_until_gone([pid])


def test_records_come_with_their_rank_and_a_rank_of_their_own_counts():
    say = "import json; print(json.dumps({'event': 'a', %s}))"
    with Processes([python(say % "'x': 1"), python(say % "'rank': 7")]) as processes:
        processes.wait(timeout=60)
    records = sorted(processes.events("a"), key=lambda record: record["rank"])
    assert records == [{"rank": 0, "event": "a", "x": 1}, {"rank": 7, "event": "a"}]
    assert processes.events("b") == [] and processes.statuses == [0, 0]


CELLS = """
import sys, time
import workshop
from workshop.launch.processes import run_together
def together(): run_together([sys.executable, "-c", WAIT])
def ranks(): workshop.start_ranks(1).run(lambda: exec(WAIT))
"""


@pytest.mark.parametrize("launcher", ["together", "ranks"])
def test_an_interrupted_cell_shows_one_line(tmp_path, launcher, kernel):
    """In a kernel, as the button in JupyterLab interrupts it. mpirun's: test_launch_mpirun.py."""
    note = tmp_path / "pid"
    wait = f"import os, pathlib, time; pathlib.Path({str(note)!r}).write_text(str(os.getpid())); "
    manager, client = kernel
    cells = f"WAIT = {wait + 'time.sleep(600)'!r}" + CELLS
    assert client.execute_interactive(cells, timeout=120)["content"]["status"] == "ok"
    # A kernel aborts what is asked just after an error: the next test's cells, one time in three.
    client.execute(f"{launcher}()", stop_on_error=False)
    until(lambda: note.exists() and note.read_text(), 120)
    manager.interrupt_kernel()
    while (message := client.get_iopub_msg(timeout=60))["msg_type"] != "error":
        pass
    assert message["content"]["traceback"] == [
        "Interrupted. All processes it had started have ended."
    ]
    assert not psutil.pid_exists(int(note.read_text()))
