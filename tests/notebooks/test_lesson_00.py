"""Lesson 00, executed with smaller numbers; its recorded results are what is tested."""

import pytest

from notebook_harness import errors_and_warnings, text_of

pytestmark = pytest.mark.slow

FEWER = {"epochs": 5, "expected_accuracy": 0.85}


@pytest.mark.timeout(400)
def test_lesson_00(run_lesson):
    found, notebook = run_lesson("00", **FEWER)
    assert found["world_size"] == [1]
    assert len(found["losses"]) == 5 and found["losses"][-1] < found["losses"][0] / 4
    assert found["accuracy"] >= 0.85
    assert list(found["phases"]) and found["phases"]["Training"] > 0
    assert found["billable_seconds"] >= 1
    assert found["longest"] == max(found["phases"], key=found["phases"].get)
    assert found["attached"] is True
    assert {"1/saved_model.pb", "1/variables/variables.index"} <= set(found["saved"])
    assert errors_and_warnings(notebook) == []
    printed = text_of(notebook)
    assert "no change" in printed
    assert 'default=Path(env("SM_MODEL_DIR"' in printed, "what a script must do is shown"
    assert 'guess["accuracy"] = ' in printed and 'answers="abc"' in printed
