"""Lesson 07, executed with smaller numbers; its recorded results are what is tested."""

import pytest

from workshop.launch.horovod import horovod_status

pytestmark = [pytest.mark.slow, pytest.mark.shaping, pytest.mark.timeout(900)]

KINDS = {"default", "two_tier", "fp16", "powersgd", "default, small buckets"}


def test_lesson_07(lesson_run):
    run = lesson_run("07")
    found = run.results
    assert found["bound"] == pytest.approx(1.75)
    assert found["gain"] > 1.2 and found["loss"] > 2
    medians = found["medians"]
    assert set(medians) == {"gloo", "ring", "blind_ring", "two_tier", "herring"}
    # Its bytes over a link of 200 Mbit/s: 4 MB once, in each direction.
    assert medians["two_tier"] > 0.9 * 4e6 * 8 / 200e6
    assert 0 <= found["off"] < 1
    assert set(found["steps"]) == KINDS
    assert found["apart"] < 1e-3 and found["standin_apart"] < 1e-3
    assert found["faster"]["two_tier"] > 1 and found["faster"]["fp16"] > 1
    assert found["refused"] == ["a CPU instance", "P5", "a newer PyTorch"]
    assert "SMDDP exists only on AWS" in run.printed
    libraries = {"horovod", "smddp"} if horovod_status().available else set()
    assert set(found["switched"]) == libraries
    assert 0 < found["usd"] < found["usd_at_most"] < 3
