"""Lesson 04, executed with smaller numbers; its recorded results are what is tested."""

import json

import pytest

from notebook_harness import SMALLER, errors_and_warnings, text_of
from workshop.course.execute import NotebookFailed, execute
from workshop.course.lessons import chosen
from workshop.launch.horovod import horovod_status
from workshop.lesson import ablation

pytestmark = pytest.mark.slow

FEWER = {"max_steps": 6, "batch": 512, "turn_steps": 8, "rounds": 3}
SCRIPT = "train_tf_horovod_steps.py"
needs_horovod = pytest.mark.skipif(not horovod_status().available, reason=str(horovod_status()))


def check_what_any_library_must_show(found, endpoint_hosts=(1, 2)):
    assert found["ranks_that_knew_the_sum"] == 4
    assert found["hosts"] in endpoint_hosts
    if found["hosts"] == 2:
        assert found["local_ranks"] == [0, 1, 0, 1] and found["cross_ranks"] == [0, 0, 1, 1]
    assert found["strangers"] == 2 and found["strangers_weights"] == 1
    # different weights at the start, after the first step and at the end; different images;
    # images in common
    assert found["complete"] == [2, 1, 1, 2, 0]
    assert found["no_tape"] == [2, 1, 2, 2, 0]
    assert found["no_broadcast"] == [2, 2, 2, 2, 0]
    assert found["no_shard"] == [2, 1, 1, 1, 64 * FEWER["max_steps"]]
    assert len(found["hashes"]) == 2 and len(set(found["hashes"])) == 1
    before, after = found["optimizer_variables"]
    assert after >= before + 8, "momentum for eight variables"
    assert found["gradients"] == 8
    assert found["replicas"] == 2
    # The share is 0.9 and more on a quiet machine; tests often run on a busy one.
    assert 0.5 < found["ceiling"] < 3 and found["speedup"] > 0.3 and 0.3 < found["share"] < 1.3


@pytest.mark.timeout(900)
@needs_horovod
def test_lesson_04(run_lesson):
    found, notebook = run_lesson("04", **FEWER)
    check_what_any_library_must_show(found)
    assert found["places_from"] == "horovod"
    assert found["phases"][0] == "negotiate" and "all-reduce" in found["phases"]
    assert all(ms > 0 for ms in found["phase_ms"])
    assert errors_and_warnings(notebook) == []
    assert "$ mpirun -np 4 " in text_of(notebook)


@pytest.mark.timeout(900)
@needs_horovod
@pytest.mark.soak  # lessons 03 and 05 do the same in `make test`
def test_lesson_04_notices_ranks_that_do_not_average(run_lesson, tmp_path):
    """The script that it calls complete lacks the tape: it ends well, and the lesson must not."""
    (path,) = chosen(("04",))
    copy = tmp_path / path.name
    text = json.dumps(json.loads(path.read_text()), ensure_ascii=False)
    wanted = "mpirun(2, SCRIPTS / choice.script, *short"
    assert wanted in text
    with ablation.without(SCRIPT, 4) as broken:
        copy.write_text(text.replace(wanted, f"mpirun(2, '{broken}', *short"))
        with pytest.raises(NotebookFailed, match="complete script must train one model"):
            execute(copy, tmp_path / "copy.ipynb", SMALLER | FEWER, cell_seconds=280)


@pytest.mark.timeout(900)
def test_lesson_04_without_horovod(run_lesson, without_horovod):
    """The stand-in trains for real under mpirun, and the lesson says what to install."""
    found, notebook = run_lesson("04", **FEWER)
    check_what_any_library_must_show(found)
    # (The job asks the endpoint's Python, which has no shadow: test_show_places.py is about that.)
    assert found["phases"] == ["all-reduce"]
    assert "Horovod is missing here" in text_of(notebook)
    assert "C++ compiler" in text_of(notebook)
