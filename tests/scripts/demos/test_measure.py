"""The demonstrations that measure, where the lessons that run them would not notice."""

import importlib
import re
import sys

import pytest
from script_harness import DEMOS, by_hand, free_port, mpirun

from workshop.measure.step_time import Compute


def test_two_ranks_print_what_computing_costs(run):
    flags = ["--hidden-units", "8,64", "--images", "4,16", "--blocks", "2", "--steps", "1"]
    flags += ["--all-reduce", "default,default again"]
    records = run(*by_hand(2), DEMOS / "measure_steps.py", *flags).events("steps")
    again = [record for record in records if record["all_reduce"] == "default again"]
    records = [record for record in records if record["all_reduce"] == "default"]
    assert len(again) == len(records)
    assert all(0 < min(record["behind"]) < max(record["seconds"]) for record in records)
    sizes = [(record["hidden_units"], record["images"]) for record in records]
    assert sizes == [(8, 4), (8, 16), (64, 4), (64, 16)]
    assert {record["world_size"] for record in records} == {2}
    assert all(len(record["seconds"]) == 2 and min(record["seconds"]) > 0 for record in records)
    # Two convolutions, 512 inputs to 8 hidden units, those to 10 classes; 4 bytes each.
    weights = 16 * 9 + 16 + 32 * 16 * 9 + 32 + 512 * 8 + 8 + 8 * 10 + 10
    assert records[0]["gradient_bytes"] == 4 * weights
    alone = [record | {"world_size": 1} for record in records]
    assert Compute.from_measurements(alone).seconds(16, records[3]["gradient_bytes"]) > 0


@pytest.mark.parametrize(
    ("script", "words", "message"),
    [
        ("measure_steps", "--all-reduce default,fast", "no fast; there are default, hierarchical"),
        ("measure_steps", "--hidden-units 0", "argument --hidden-units"),
        ("measure_steps", "--hidden-units many", "argument --hidden-units"),
        ("measure_steps", "--hidden-units 8,,16", "argument --hidden-units"),
        ("measure_less_often", "--time DDP,shout", "no shout; there are DDP, fp16, PowerSGD"),
        ("measure_sharding", "--ways zero4", "no zero4; there are ddp, zero1"),
    ],
)
def test_a_wrong_flag_is_said(monkeypatch, capsys, script, words, message):
    module = importlib.import_module(script)
    monkeypatch.setattr(sys, "argv", [script, *words.split()])
    with pytest.raises(SystemExit) as ended:
        getattr(module, "arguments", module.main)()
    assert ended.value.code == 2 and message in capsys.readouterr().err


# A hierarchical all-reduce that forgets to go across the instances.
BROKEN = f"""
import runpy, sys
sys.path.insert(0, {str(DEMOS)!r})
from collectives import ring
ring.all_reduce = lambda *_, **__: None
runpy.run_path({str(DEMOS / "measure_all_reduce.py")!r}, run_name="__main__")
"""


def test_a_wrong_algorithm_is_not_measured(run):
    two_instances = {"LOCAL_WORLD_SIZE": "1", "MASTER_PORT": free_port(), "OMP_NUM_THREADS": "1"}
    flags = ["--algorithms", "hierarchical"]
    done = run(*mpirun(2), "-c", BROKEN, *flags, check=False, **two_instances)
    assert done.code != 0  # gloo may abort a rank whose peer has ended
    assert re.search(r"error: hierarchical is wrong in \d+ of 1001 x 2 elements", done.stderr)
    assert done.events("all_reduce") == []


@pytest.mark.soak  # lesson 04 runs it
@pytest.mark.horovod
@pytest.mark.timeout(400)
@pytest.mark.parametrize("threshold", ["", "0"])
def test_fusion_is_measured_with_it_or_without(run, tmp_path, threshold):
    flags = ["--tensors", "12", "--bytes", "4800", "--calls", "2", "--rounds", "2"]
    settings = {"timeout": 300, "HOROVOD_TIMELINE": str(tmp_path / "trace")}
    settings |= {"HOROVOD_FUSION_THRESHOLD": threshold} if threshold else {}
    done = run(*mpirun(2), DEMOS / "measure_fusion.py", *flags, **settings)
    records = done.events("fusion")
    assert [record["tensors"] for record in records] == [12, 12]
    assert all(record["seconds"] > 0 for record in records)
    fused = "MEMCPY_IN_FUSION_BUFFER" in (tmp_path / "trace").read_text()
    assert fused is (threshold == "")


@pytest.mark.soak  # lesson 03 runs it as a job
def test_a_servers_step_passes_what_the_formula_says(run):
    flags = ["--workers", "1,2", "--bytes", "4000", "--rounds", "2"]
    records = run(*mpirun(3), DEMOS / "measure_server.py", *flags).events("server")
    assert sorted(record["workers"] for record in records) == [1, 1, 2, 2]
    for record in records:  # the weights out and a gradient in, each with one number more
        assert record["passed"] == record["workers"] * 2 * (4000 + 4)
        assert record["step"] > 0 and record["ring"] > 0


def test_a_server_without_enough_ranks_is_said(run):
    flags = ["--workers", "4", "--bytes", "4000"]
    done = run(*mpirun(1), DEMOS / "measure_server.py", *flags, check=False)
    assert done.code != 0
    assert "error: 1 ranks are a server and 0 workers, not 4" in done.stderr
