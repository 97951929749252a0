"""Lesson 08, executed with smaller numbers; its recorded results are what is tested."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def test_lesson_08(lesson_run):
    run = lesson_run("08")
    found = run.results
    assert found["status"] == "InService" and found["deploy_seconds"] > 0
    assert found["apart"] < 1e-6 and found["batch_apart"] < 1e-6
    assert found["batch_answers"] == 360
    assert found["forms"] == ["instances", "inputs", "JSON lines"] and found["refused"] == 400
    assert 0 <= found["wrong"] < 100 and found["accuracy"] == pytest.approx(
        1 - found["wrong"] / 360
    )
    assert 0 < found["median_ms"] <= found["slowest_ms"]
    way = found["way"]
    assert way.count("Interrupted") == 1 and way.count("Training") == 2 and way[-1] == "Completed"
    assert found["same"] and len(set(found["hashes"].values())) == 1
    assert found["broke"] == {"ranks-overwrite": True}
    assert found["endpoints_left"] == 0
    assert 0 < found["usd"] < found["usd_at_most"] < 1 and found["usd_a_month"] > 50
    assert "0 endpoints of this seat are left." in run.printed
