"""The lessons on lesser machines: without Horovod, and without links to narrow."""

import lesson_runs
import pytest
from test_lesson_04 import check_what_any_library_must_show
from test_lesson_05 import check_what_was_measured

from local_sagemaker.pytest_plugin import emulator
from workshop.course.lessons import chosen
from workshop.lesson import reference_results

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


@pytest.fixture
def run_again(tmp_path):
    """A function that executes a lesson on an emulator of its own, started with `options`."""

    def run(number, options=None, **parameters):
        (lesson,) = chosen((number,))
        state = tmp_path / "state"
        with emulator(state, options or lesson_runs.AS_A_LEARNER):
            lesson_runs.run(lesson, tmp_path / lesson.name, **parameters)
        return lesson_runs.read(tmp_path / lesson.name, state)

    return run


def test_lesson_04_without_horovod(run_again, without_horovod):
    """The stand-in trains for real under mpirun, and the lesson says what to install."""
    run = run_again("04", **lesson_runs.SMALL["04"])
    check_what_any_library_must_show(run.results)
    # (The job asks the emulator's Python, which has no shadow: see scripts/demos/test_others.py.)
    assert run.results["phases"] == ["all-reduce"]
    assert "Horovod is missing here" in run.printed
    assert "C++ compiler" in run.printed


def test_lesson_05_without_horovod(run_again, without_horovod):
    """The stand-in trains for real, and the lesson says what to install."""
    run = run_again("05", **lesson_runs.SMALL["05"], expected_accuracy=0.5)
    assert "Horovod is missing here" in run.printed
    assert "C++ compiler" in run.printed
    assert run.results["world_size"] == 4 and run.results["different_weights"] == 1
    assert run.results["losses"][-1] < run.results["losses"][0]
    check_what_was_measured(run.results)


FEWER = {
    "02": {},
    "03": {"steps": 40, "epochs": 6, "seeds": 1, "expected_accuracy": 0},
    "06": {"links": ["wide", "50mbit"], "jobs_each": 1, "rounds": 2, "layout_instances": [1, 2]},
    "07": {"megabytes": 1, "blocks": 2},
    "11": {"width": 64, "rounds": 2},
    "12": {"steps": 128},
}


@pytest.mark.parametrize("number", FEWER)
def test_a_lesson_without_narrow_links(run_again, number):
    """Where instances are plain processes it runs, and says what is not its own."""
    run = run_again(number, ["--isolation", "processes"], **FEWER[number])
    recorded = reference_results.load(number)
    assert "Bandwidth is unlimited: instances are plain processes" in run.printed
    assert recorded.caption in run.printed and run.results["recorded"] is True
    assert run.complaints == []
    if number == "06":
        shown = {(row["placement"], row["algorithm"]) for row in run.results["placed"]}
        assert {("1 x 8", "gloo"), ("2 x 4", "gloo"), ("4 x 2", "hierarchical")} <= shown
        assert "recorded elsewhere" in run.shown, "the figures' titles"
        return
    assert "recorded elsewhere" in run.shown, "the answers to the guesses"
    for name in set(reference_results.NEEDED[number]) - {"steps"}:
        assert run.results[name] == recorded.results[name], name
