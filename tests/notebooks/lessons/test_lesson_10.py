"""Lesson 10, executed with smaller numbers; its recorded results are what is tested."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def test_lesson_10_resumes_exactly(lesson_run):
    found = lesson_run("10").results
    parts = found["resumed_with"]
    assert parts.pop("weights, optimizer, step") == 0 < min(parts.values())
    way = found["way"]
    assert way.count("Interrupted") == 1 and way.count("Training") == 2 and way[-1] == "Completed"
    assert found["same"] and len(set(found["hashes"].values())) == 1
    (step,) = found["resumed"]
    assert step % 500 == 0 and 0 < found["twice"] == found["reached"] - step < 500
    assert 0 < found["usd"] < found["usd_at_most"] < 1


def test_lesson_10_finds_what_broke(lesson_run):
    found = lesson_run("10").results
    assert found["quiet_cause"] == "they started from different weights"
    assert found["quiet"]["images_seen"] and found["quiet"]["weights_at_start"]
    assert len(set(found["losses_by_rank"].values())) == 2, "both ranks printed the same loss"
    assert (found["hang_rank"], found["hang_function"]) == (1, "wait_for")
    assert found["hang_waiting"] == "[0]" and found["fixed"]
