"""Lesson 10, executed with smaller numbers; its recorded results are what is tested."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def test_lesson_10_resumes_exactly(lesson_run):
    results = lesson_run("10").results
    parts = results["resumed_with"]
    assert parts.pop("weights, optimizer, step") == 0 < min(parts.values())
    way = results["way"]
    assert way.count("Interrupted") == 1 and way.count("Training") == 2 and way[-1] == "Completed"
    assert results["same"] and len(set(results["hashes"].values())) == 1
    (step,) = results["resumed"]
    assert step % 250 == 0 and 0 < results["twice"] == results["reached"] - step < 250
    assert results["best_seconds"] == pytest.approx((2 * 3.6 * results["write_ms"]) ** 0.5)
    assert 0 < results["usd"] < results["usd_at_most"] < 1


def test_lesson_10_finds_what_broke(lesson_run):
    results = lesson_run("10").results
    assert results["quiet_cause"] == "they started from different weights"
    assert results["quiet"]["images_seen"] and results["quiet"]["weights_at_start"]
    assert len(set(results["losses_by_rank"].values())) == 2, "both ranks printed the same loss"
    assert (results["hang_rank"], results["hang_function"]) == (1, "wait_for")
    assert results["hang_waiting"] == "[0]" and results["fixed"]


def test_another_number_of_ranks_goes_on_from_the_checkpoint(lesson_run):
    results = lesson_run("10").results
    assert results["elastic_ranks"] == [2, 1, 1] and results["elastic_apart"] < 1e-5
