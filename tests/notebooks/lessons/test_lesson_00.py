"""Lesson 00, executed with smaller numbers; its recorded results are what is tested."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def test_lesson_00(lesson_run):
    run = lesson_run("00")
    found = run.results
    assert found["world_size"] == [1]
    assert len(found["losses"]) == 5 and found["losses"][-1] < found["losses"][0] / 4
    assert found["accuracy"] >= 0.85
    assert list(found["phases"]) and found["phases"]["Training"] > 0
    assert found["billable_seconds"] >= 1
    assert found["longest"] == max(found["phases"], key=found["phases"].get)
    assert found["attached"] is True
    assert {"1/saved_model.pb", "1/variables/variables.index"} <= set(found["saved"])
    assert "no change" in run.printed
    assert '{"event": "step", "step": 10, ' in run.printed, "a record of the log is shown"
