"""Lesson 08, executed with smaller numbers; its recorded results are what is tested."""

import pytest


def test_lesson_08(lesson, results):
    assert any(name.endswith("1/saved_model.pb") for name in results["in_archive"])
    assert results["status"] == "InService"
    assert results["deploy_order"] == ["model", "endpoint configuration", "endpoint"]
    assert results["difference"] < 1e-6 and results["batch_difference"] < 1e-6
    assert results["batch_answers"] == results["rows_joined"] == 360
    assert results["forms"] == ["instances", "JSON lines"]
    assert results["body_limit"] == 6_291_456 and 10_000 < results["images_that_fit"] < 20_000
    assert results["refused"] == 400
    assert 0 <= results["wrong"] < 100
    assert results["accuracy"] == pytest.approx(1 - results["wrong"] / 360)
    assert results["by_handlers"] == pytest.approx(results["accuracy"])
    # How long eight clients wait depends on what else this machine does. The lesson itself holds
    # its means against Little's law.
    assert results["slower"][1] > 1, "nobody queued"
    assert 0 < results["median_ms"] < results["tails_ms"]["1 client"]
    assert results["per_image_factor"][0] > 1, "an image of 360 costs as much as one alone"
    assert results["endpoints_left"] == 0
    assert 0 < results["usd"] < results["usd_at_most"] < 1 and results["usd_a_month"] > 50
    assert "0 endpoints of this seat are left." in lesson.printed
