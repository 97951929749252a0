"""Interleaved timing: who is not measured is paused, and no process is left behind."""

import pytest
from rank_helpers import pids_of, wait_until_gone

from workshop.launch.processes import ProcessFailed
from workshop.measure import interleaved

# The real script runs in lesson 04's test. These processes only count and sleep.
WORKER = """
import json, os, socket, sys, time
kind = sys.argv[sys.argv.index("--kind") + 1]
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[sys.argv.index("--socket") + 1])
talk = line.makefile("rw")
def say(**record):
    talk.write(json.dumps(record) + "\\n"); talk.flush()
here = os.path.dirname(os.path.abspath(sys.argv[0]))
open(os.path.join(here, f"{kind}.{os.getpid()}.pid"), "w").close()
def state(pid):
    try: return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
    except OSError: return "T"  # it gave up
def running():
    names = [name.split(".")[:2] for name in os.listdir(here) if name.endswith(".pid")]
    return sorted({kind for kind, pid in names if state(pid) != "T"})
say(kind=kind, rank=0, pid=os.getpid())
print("pid", os.getpid(), flush=True)
for asked in talk:
    if kind == FAILS: sys.exit("I give up")
    began = time.perf_counter()
    time.sleep(0.01 * int(asked) * (2 if kind == "ranks" else 1))
    seconds = time.perf_counter() - began
    print("running", *running(), flush=True)
    say(seconds=seconds)
"""


@pytest.fixture
def workers(tmp_path, monkeypatch):
    """Put programs that only sleep in the place of scripts/demos/timed_steps.py."""

    def write(fails=None):
        (tmp_path / "timed_steps.py").write_text(WORKER.replace("FAILS", repr(fails)))

    monkeypatch.setattr(interleaved, "DEMOS", tmp_path)
    started, start = [], interleaved.Processes

    def noted(*arguments, **more):
        started.append(start(*arguments, **more))
        return started[-1]

    monkeypatch.setattr(interleaved, "Processes", noted)
    write()
    yield write, started
    assert len(started) == 1 and not started[0].alive
    wait_until_gone(pids_of(started[0].lines))


def test_settings_are_measured_alternately():
    order = []

    def measure(setting):
        order.append(setting["batch"])
        return float(len(order))

    found = interleaved.interleave(measure, {"a": {"batch": 1}, "b": {"batch": 2}}, repeats=3)
    assert order == [1, 2, 1, 2, 1, 2]
    assert found["a"].tolist() == [1, 3, 5] and found["b"].tolist() == [2, 4, 6]
    with pytest.raises(ValueError, match="at least one"):
        interleaved.interleave(measure, {}, 3)


def test_speeds_are_those_of_the_group_that_is_measured_and_the_others_are_paused(workers):
    table = interleaved.training_speeds(batch=100, steps=10, rounds=3)
    assert (
        list(table) == [interleaved.ONE, interleaved.INDEPENDENT, interleaved.RANKS]
        and len(table) == 3
    )
    # 10 steps of 10 ms for 100 images are 10,000 images a second; of the ranks' 20 ms, half.
    assert table[interleaved.ONE].median() == pytest.approx(10_000, rel=0.3)
    assert (table[interleaved.INDEPENDENT] / table[interleaved.ONE]).median() == pytest.approx(
        2, rel=0.3
    )
    assert (table[interleaved.RANKS] / table[interleaved.ONE]).median() == pytest.approx(1, rel=0.3)
    _, (processes,) = workers
    found = [line.text for line in processes.lines if line.text.startswith("running")]
    assert set(found) == {"running first", "running first second", "running ranks"}


@pytest.mark.parametrize("kind", ["second", "ranks"])
def test_a_process_that_gives_up_ends_all(workers, kind):
    write, _ = workers
    write(fails=kind)
    with pytest.raises(ProcessFailed, match=r"(?s)while it was measured.*I give up"):
        interleaved.training_speeds(batch=100, steps=1, rounds=2)


def test_processes_that_never_become_ready(workers, tmp_path):
    (tmp_path / "timed_steps.py").write_text("import sys; sys.exit('no such data')")
    with pytest.raises(ProcessFailed, match=r"(?s)Not all processes became ready.*no such data"):
        interleaved.training_speeds(batch=100, steps=1, rounds=1)
