"""Lesson 04, executed with smaller numbers; its recorded results are what is tested."""

from lesson_runs import SMALL

from workshop.launch.horovod import horovod_status


def check_what_any_library_must_show(results, endpoint_hosts=(1, 2)):
    assert results["ranks_that_knew_the_sum"] == 4
    assert results["hosts"] in endpoint_hosts
    if results["hosts"] == 2:
        assert results["local_ranks"] == [0, 1, 0, 1] and results["cross_ranks"] == [0, 0, 1, 1]
    assert results["independent"] == 2 and results["independent_weights"] == 1
    # different weights at the start, after the first step and at the end; different images;
    # images in common
    assert results["complete"] == [2, 1, 1, 2, 0]
    assert results["no_tape"] == [2, 1, 2, 2, 0]
    assert results["no_broadcast"] == [2, 2, 2, 2, 0]
    assert results["no_shard"] == [2, 1, 1, 1, 64 * SMALL["04"]["max_steps"]]
    assert len(results["hashes"]) == 2 and len(set(results["hashes"])) == 1
    before, after = results["optimizer_variables"]
    assert after >= before + 8, "momentum for eight variables"
    assert results["gradients"] == 8
    # How fast is a matter of the day; test_scaling.py is about how it is computed.
    assert set(results["scaling"]) == {"512 images", "8 images"}
    for record in results["scaling"].values():
        assert record["world_size"] == 2
        assert 0 < record["share"]["low"] <= record["share"]["median"] <= record["share"]["high"]


def test_lesson_04(lesson, results):
    check_what_any_library_must_show(results)
    assert "$ mpirun -np 4 " in lesson.printed
    if horovod_status().available:
        assert results["places_from"] == "horovod"
        assert results["phases"][0] == "negotiate" and "all-reduce" in results["phases"]
        assert all(ms > 0 for ms in results["phase_ms"])
        assert results["unfused_times"] > 0
        assert results["fusion_verdict"] in ("slower", "no difference shown")
    else:
        assert results["phases"] == ["all-reduce"]
        assert "Horovod is missing here" in lesson.printed
