"""Lesson 08, executed with smaller numbers; its recorded results are what is tested."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def test_lesson_08(lesson_run):
    run = lesson_run("08")
    results = run.results
    assert any(name.endswith("1/saved_model.pb") for name in results["in_archive"])
    assert results["status"] == "InService" and results["deploy_seconds"] > 0
    assert results["deploy_order"] == ["model", "endpoint configuration", "endpoint"]
    assert results["difference"] < 1e-6 and results["batch_difference"] < 1e-6
    assert results["batch_answers"] == results["rows_joined"] == 360
    assert results["forms"] == ["instances", "inputs", "simplified JSON", "JSON lines"]
    assert results["refused"] == 400
    assert 0 <= results["wrong"] < 100
    assert results["accuracy"] == pytest.approx(1 - results["wrong"] / 360)
    assert results["by_handlers"] == pytest.approx(results["accuracy"])
    assert 0 < results["median_ms"] < results["busy_ms"] <= results["slowest_ms"], "nobody queued"
    assert results["per_image_factor"] > 1, "a request of 360 images costs as much for each of them"
    assert results["endpoints_left"] == 0
    assert 0 < results["usd"] < results["usd_at_most"] < 1 and results["usd_a_month"] > 50
    assert "0 endpoints of this seat are left." in run.printed
