"""Lesson 05, executed with smaller numbers; its recorded results are what is tested."""

import json
import os
import shutil

import pytest

from notebook_harness import SMALLER, errors_and_warnings, text_of
from workshop.horovod import horovod_status
from workshop.notebooks.execute import NotebookFailed, execute
from workshop.notebooks.lessons import chosen
from workshop.paths import SCRIPTS

pytestmark = pytest.mark.slow

FEWER = {"epochs": 5, "expected_accuracy": 0.85}


@pytest.mark.timeout(600)
@pytest.mark.skipif(not horovod_status().available, reason=str(horovod_status()))
def test_lesson_05(run_lesson):
    found, notebook = run_lesson("05", **FEWER)
    assert found["status"] == "Completed"
    assert found["world_size"] == 4
    assert found["ranks_per_host"] == {"algo-1": 2, "algo-2": 2}
    assert found["different_weights"] == 1 and len(found["hashes"]) == 4
    assert found["losses"][-1] < found["losses"][0] / 4
    assert found["accuracy"] >= 0.85
    assert found["misspelled_option_sent"] is False
    assert found["parameter_server_starts_mpi"] is False
    assert errors_and_warnings(notebook) == []


@pytest.mark.timeout(600)
@pytest.mark.skipif(not horovod_status().available, reason=str(horovod_status()))
def test_lesson_05_notices_ranks_that_do_not_average(run_lesson, tmp_path):
    """The same script without the all-reduce: it ends well, and the lesson must not."""
    broken = tmp_path / "scripts"
    shutil.copytree(SCRIPTS, broken)
    script = broken / "train_tf_horovod.py"
    kept = [
        line for line in script.read_text().splitlines() if "DistributedGradientTape" not in line
    ]
    script.write_text("\n".join(kept))
    (path,) = chosen(("05",))
    copy, settings = tmp_path / path.name, 'session.job_settings("horovod")'
    text = json.dumps(json.loads(path.read_text()), ensure_ascii=False)
    changed = json.dumps(f'({settings} | {{"source_dir": "{broken}"}})')[1:-1]
    assert json.dumps(settings)[1:-1] in text
    copy.write_text(text.replace(json.dumps(settings)[1:-1], changed))
    with pytest.raises(NotebookFailed, match="4 different sets of weights"):
        execute(copy, tmp_path / "copy.ipynb", SMALLER | FEWER | {"epochs": 2}, cell_seconds=280)


@pytest.mark.timeout(600)
def test_lesson_05_without_horovod(run_lesson, monkeypatch, tmp_path):
    """The stand-in trains for real, and the lesson says what to install."""
    shadow = tmp_path / "shadow"
    (shadow / "horovod").mkdir(parents=True)
    (shadow / "horovod" / "__init__.py").write_text("")  # found first, and without a library
    monkeypatch.syspath_prepend(shadow)
    before = os.environ.get("PYTHONPATH")
    joined = os.pathsep.join(filter(None, [str(shadow), before]))
    monkeypatch.setenv("PYTHONPATH", joined)
    found, notebook = run_lesson("05", epochs=6, expected_accuracy=0.5)
    assert "Horovod is missing here" in text_of(notebook)
    assert "C++ compiler" in text_of(notebook)
    assert found["world_size"] == 4 and found["different_weights"] == 1
    assert found["losses"][-1] < found["losses"][0]
