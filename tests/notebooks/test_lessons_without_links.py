"""Lessons 06 and 07 where instances are plain processes: they run, and say what is not theirs."""

import nbformat
import pytest

from local_sagemaker import daemon
from notebook_harness import SMALLER, errors_and_warnings, text_of
from workshop.course.execute import execute
from workshop.course.lessons import chosen
from workshop.lesson import reference_results
from workshop.lesson.results import read_results

pytestmark = [pytest.mark.slow, pytest.mark.soak]
FEWER = {
    "06": {"links": ["wide", "50mbit"], "epochs": 2, "layout_instances": [1, 2]},
    "07": {"megabytes": 1, "blocks": 2, "epochs": 1},
}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("lesson", FEWER)
def test_a_lesson_without_narrow_links(lesson, own_state, tmp_path):
    if daemon.running(own_state) is None:
        daemon.start(own_state, 0, ["--isolation", "processes"])
    (path,) = chosen((lesson,))
    execute(path, tmp_path / path.name, SMALLER | FEWER[lesson], cell_seconds=800)
    found, notebook = read_results(tmp_path / path.name), nbformat.read(tmp_path / path.name, 4)
    text, kept = text_of(notebook), reference_results.load(lesson)
    assert "Links stay wide: instances are plain processes here" in text
    assert kept.caption in text and found["recorded"] is True
    assert errors_and_warnings(notebook) == []
    if lesson == "06":
        shown = {(row["placement"], row["algorithm"]) for row in found["placed"]}
        assert {("1 x 8", "gloo"), ("2 x 4", "gloo"), ("8 x 1", "two_tier")} <= shown
    else:
        assert found["events"] == kept.results["events"]
        assert found["apart"] < 1e-3  # its own training, on links as they are
