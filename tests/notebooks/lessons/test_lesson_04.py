"""Lesson 04, executed with smaller numbers; its recorded results are what is tested."""

import pytest
from lesson_runs import SMALL

from workshop.launch.horovod import horovod_status

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def check_what_any_library_must_show(found, endpoint_hosts=(1, 2)):
    assert found["ranks_that_knew_the_sum"] == 4
    assert found["hosts"] in endpoint_hosts
    if found["hosts"] == 2:
        assert found["local_ranks"] == [0, 1, 0, 1] and found["cross_ranks"] == [0, 0, 1, 1]
    assert found["independent"] == 2 and found["independent_weights"] == 1
    # different weights at the start, after the first step and at the end; different images;
    # images in common
    assert found["complete"] == [2, 1, 1, 2, 0]
    assert found["no_tape"] == [2, 1, 2, 2, 0]
    assert found["no_broadcast"] == [2, 2, 2, 2, 0]
    assert found["no_shard"] == [2, 1, 1, 1, 64 * SMALL["04"]["max_steps"]]
    assert len(found["hashes"]) == 2 and len(set(found["hashes"])) == 1
    before, after = found["optimizer_variables"]
    assert after >= before + 8, "momentum for eight variables"
    assert found["gradients"] == 8
    assert found["replicas"] == 2
    # How fast is a matter of the day; test_interleaved.py is about how it is measured.
    assert min(found["ceiling"], found["speedup"], found["share"]) > 0


def test_lesson_04(lesson_run):
    run = lesson_run("04")
    found = run.results
    check_what_any_library_must_show(found)
    assert "$ mpirun -np 4 " in run.printed
    if horovod_status().available:
        assert found["places_from"] == "horovod"
        assert found["phases"][0] == "negotiate" and "all-reduce" in found["phases"]
        assert all(ms > 0 for ms in found["phase_ms"])
        assert found["tuned"] >= 4, "HOROVOD_AUTOTUNE_LOG has a row for each trial"
    else:
        assert found["phases"] == ["all-reduce"]
        assert "Horovod is missing here" in run.printed
