"""Lesson 08, executed with smaller numbers; its recorded results are what is tested."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def test_lesson_08(lesson_run):
    run = lesson_run("08")
    found = run.results
    assert any(name.endswith("1/saved_model.pb") for name in found["in_archive"])
    assert found["status"] == "InService" and found["deploy_seconds"] > 0
    assert found["deploy_order"] == ["model", "endpoint configuration", "endpoint"]
    assert found["difference"] < 1e-6 and found["batch_difference"] < 1e-6
    assert found["batch_answers"] == found["rows_joined"] == 360
    assert found["forms"] == ["instances", "inputs", "simplified JSON", "JSON lines"]
    assert found["refused"] == 400
    assert 0 <= found["wrong"] < 100
    assert found["accuracy"] == pytest.approx(1 - found["wrong"] / 360)
    assert found["by_handlers"] == pytest.approx(found["accuracy"])
    assert 0 < found["median_ms"] < found["busy_ms"] <= found["slowest_ms"], "nobody queued"
    assert found["per_image_factor"] > 1, "a request of 360 images costs as much for each of them"
    assert found["endpoints_left"] == 0
    assert 0 < found["usd"] < found["usd_at_most"] < 1 and found["usd_a_month"] > 50
    assert "0 endpoints of this seat are left." in run.printed
