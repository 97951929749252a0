"""Lesson 00, executed with smaller numbers; its recorded results are what is tested."""

import pytest


def test_lesson_00(lesson, results):
    assert results["world_size"] == [1]
    assert len(results["losses"]) == 5 and results["losses"][-1] < results["losses"][0] / 4
    assert results["accuracy"] >= 0.85
    assert list(results["phases"]) and results["phases"]["Training"] > 0
    assert results["billable_seconds"] >= 1
    assert results["longest"] == max(results["phases"], key=results["phases"].get)
    parts = results["parts"]
    assert all(length >= 0 for length in parts.values()) and len(parts) == 5
    assert sum(parts.values()) == pytest.approx(results["phases"]["Training"], rel=0.1)
    assert results["attached"] is True
    assert {"1/saved_model.pb", "1/variables/variables.index"} <= set(results["saved"])
    assert "no change" in lesson.printed
    assert '{"event": "step", "step": 10, ' in lesson.printed, "a record of the log is shown"
