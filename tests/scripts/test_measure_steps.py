"""measure_steps.py: what the calculator of lesson 07 starts from."""

import sys

import pytest
from script_harness import DEMOS, torchrun

from workshop.measure.step_time import Compute

SCRIPT = DEMOS / "measure_steps.py"
SMALL = ["--blocks", "2", "--steps", "1"]


def test_one_rank_gives_what_computing_costs(run):
    sizes = ["--hidden-units", "8,64", "--images", "4,16"]
    records = run(sys.executable, SCRIPT, *sizes, *SMALL).events("steps")
    assert [(one["hidden_units"], one["images"]) for one in records] == [
        (8, 4),
        (8, 16),
        (64, 4),
        (64, 16),
    ]
    assert {one["world_size"] for one in records} == {1}
    assert all(len(one["seconds"]) == 2 and min(one["seconds"]) > 0 for one in records)
    # Two convolutions, 512 inputs to 8 hidden units, those to 10 classes; 4 bytes each.
    weights = 16 * 9 + 16 + 32 * 16 * 9 + 32 + 512 * 8 + 8 + 8 * 10 + 10
    assert records[0]["gradient_bytes"] == 4 * weights
    assert Compute.from_measurements(records).seconds(16, records[3]["gradient_bytes"]) > 0


def test_several_ranks_print_one_record(run):
    records = run(*torchrun(2), SCRIPT, "--hidden-units", "8", *SMALL).events("steps")
    assert [(one["world_size"], one["images"]) for one in records] == [(2, 64)]


@pytest.mark.parametrize("value", ["0", "many", "8,,16"])
def test_a_bad_size_is_said(run, value):
    done = run(sys.executable, SCRIPT, "--hidden-units", value, check=False)
    assert done.code == 2 and "argument --hidden-units" in done.stderr
