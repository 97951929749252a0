"""Processes that take turns: who has no turn is paused, and nobody is left behind."""

import pytest
from rank_helpers import pids_of, wait_until_gone

from workshop import turns
from workshop.mpirun import MpiFailed

# The real scripts run in lesson 04's test. These players only count and sleep.
PLAYER = """
import json, os, socket, sys, time
kind = sys.argv[sys.argv.index("--kind") + 1]
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[sys.argv.index("--meet") + 1])
talk = line.makefile("rw")
def say(**record):
    talk.write(json.dumps(record) + "\\n"); talk.flush()
say(kind=kind, rank=0, pid=os.getpid())
print("pid", os.getpid(), flush=True)
for asked in talk:
    if kind == FAILS: sys.exit("I give up")
    began = time.perf_counter()
    time.sleep(0.01 * int(asked) * (2 if kind == "ranks" else 1))
    say(seconds=time.perf_counter() - began)
"""


@pytest.fixture
def players(tmp_path, monkeypatch):
    """Put programs that only sleep in the place of scripts/take_turns.py."""

    def write(fails=None):
        (tmp_path / "take_turns.py").write_text(PLAYER.replace("FAILS", repr(fails)))

    monkeypatch.setattr(turns, "SCRIPTS", tmp_path)
    started, start = [], turns.start

    def noted(*arguments, **more):
        started.append(start(*arguments, **more))
        return started[-1]

    monkeypatch.setattr(turns, "start", noted)
    write()
    yield write
    assert len(started) == 3 and not any(one.alive for one in started)
    wait_until_gone([pid for one in started for pid in pids_of(one.lines)])


def test_speeds_are_those_of_the_group_that_has_the_turn(players):
    table = turns.measure(batch=100, steps=10, rounds=3)
    assert list(table) == [turns.ONE, turns.APART, turns.RANKS] and len(table) == 3
    # 10 steps of 10 ms for 100 images are 10,000 images a second; of the ranks' 20 ms, half.
    assert table[turns.ONE].median() == pytest.approx(10_000, rel=0.3)
    assert (table[turns.APART] / table[turns.ONE]).median() == pytest.approx(2, rel=0.3)
    assert (table[turns.RANKS] / table[turns.ONE]).median() == pytest.approx(1, rel=0.3)


@pytest.mark.parametrize("kind", ["second", "ranks"])
def test_a_process_that_gives_up_ends_all(players, kind):
    players(fails=kind)
    with pytest.raises(MpiFailed, match=r"(?s)ended in its turn.*I give up"):
        turns.measure(batch=100, steps=1, rounds=2)


def test_processes_that_never_become_ready(players, tmp_path):
    (tmp_path / "take_turns.py").write_text("import sys; sys.exit('no such data')")
    with pytest.raises(MpiFailed, match=r"(?s)Not all processes became ready.*no such data"):
        turns.measure(batch=100, steps=1, rounds=1)
