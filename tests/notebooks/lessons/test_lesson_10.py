"""Lesson 10, executed with smaller numbers; its recorded results are what is tested."""

import re
from types import SimpleNamespace

import nbformat
import pytest

from workshop.course.lessons import chosen


def test_lesson_10_resumes_exactly(results):
    parts = results["resumed_with"]
    assert parts.pop("weights, optimizer, step") == 0 < min(parts.values())
    way = results["way"]
    assert way.count("Interrupted") == 1 and way.count("Training") == 2 and way[-1] == "Completed"
    assert results["same"] and len(set(results["hashes"].values())) == 1
    (step,) = results["resumed"]
    assert step % 250 == 0 and 0 < results["twice"] == results["reached"] - step < 250
    assert results["best_seconds"] == pytest.approx((2 * 3.6 * results["write_ms"]) ** 0.5)
    assert 0 < results["usd"] < results["usd_at_most"] < 1


def test_the_best_interval_costs_least(results):
    measured, formula = results["extra_measured"], results["extra_formula"]
    often, rarely = "an eighth of the best", "eight times the best"
    assert measured["the best"] < measured[often] < measured[rarely]
    assert results["interrupted_jobs"] == 18
    assert formula[often] == pytest.approx(formula[rarely], rel=0.1), "they should cost the same"
    assert measured[often] == pytest.approx(formula[often], abs=0.02)


def test_lesson_10_finds_what_broke(results):
    assert results["quiet_cause"] == "they started from different weights"
    assert results["quiet"]["images_seen"] and results["quiet"]["weights_at_start"]
    assert len(set(results["losses_by_rank"].values())) == 2, "both ranks printed the same loss"
    assert (results["hang_rank"], results["hang_function"]) == (1, "wait_for")
    assert results["hang_waiting"] == "[0]" and results["fixed"]


def test_another_number_of_ranks_goes_on_from_the_checkpoint(results):
    assert results["elastic_ranks"] == [2, 1, 1] and results["elastic_apart"] < 1e-5


# The rank was asked while it looked whether the file is there: Python's own frames come first.
STACKS = """\
[0] Current thread 0x1 (most recent call first):
[0]   File "torch/distributed/distributed_c10d.py", line 4818 in barrier
[0]   File "scripts/demos/breaking/rank_hangs.py", line 24 in train
[1] Current thread 0x2 (most recent call first):
[1]   File "/usr/lib/python3.11/pathlib.py", line 1013 in stat
[1]   File "/usr/lib/python3.11/pathlib.py", line 1235 in exists
[1]   File "scripts/demos/breaking/rank_hangs.py", line 48 in wait_for
[1]   File "scripts/demos/breaking/rank_hangs.py", line 28 in train
[0] RuntimeError: Timed out waiting 6000ms for recv operation to complete"""


def test_a_rank_is_in_a_function_of_its_script_also_while_that_calls_one_of_pythons():
    (lesson,) = chosen(("10",))
    cells = nbformat.read(lesson, as_version=4).cells
    (reads_stacks,) = (cell.source for cell in cells if cell.source.startswith("stacks:"))
    compared = {}
    guess = SimpleNamespace(compare=compared.update)
    hang = SimpleNamespace(log=STACKS.splitlines())
    exec(reads_stacks, {"re": re, "hang": hang, "guess": guess})
    assert compared == {"elsewhere": "rank 1", "where": "wait_for"}
