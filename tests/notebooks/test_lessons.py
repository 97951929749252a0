"""The lessons, executed with smaller numbers; their recorded results are what is tested."""

import json
import os
import shutil

import nbformat
import pytest

from local_sagemaker import daemon
from workshop.horovod import horovod_status
from workshop.notebooks.execute import NotebookFailed, execute
from workshop.notebooks.lessons import chosen
from workshop.paths import SCRIPTS
from workshop.recording import records

pytestmark = pytest.mark.slow

SMALLER = {"target": "local", "seat": "tests", "epochs": 5, "expected_accuracy": 0.85}


@pytest.fixture(scope="module")
def run_lesson(own_state, tmp_path_factory):
    """Execute a lesson by its number; return its recorded results and its copy."""
    daemon.start(own_state, 0)
    out = tmp_path_factory.mktemp("build")

    def run(number, **parameters):
        (path,) = chosen((number,))
        execute(path, out / path.name, SMALLER | parameters, cell_seconds=280)
        return records(out / path.name), nbformat.read(out / path.name, as_version=4)

    return run


def text_of(notebook):
    """All text that the cells printed."""
    outputs = [one for cell in notebook.cells for one in cell.get("outputs", [])]
    return "".join(one.get("text", "") for one in outputs)


def errors_and_warnings(notebook):
    return [
        one.get("text")
        for cell in notebook.cells
        for one in cell.get("outputs", [])
        if one.get("name") == "stderr" or one.output_type == "error"
    ]


@pytest.mark.timeout(400)
def test_lesson_00(run_lesson):
    found, notebook = run_lesson("00")
    assert found["world_size"] == [1]
    assert len(found["losses"]) == 5 and found["losses"][-1] < found["losses"][0] / 4
    assert found["accuracy"] >= 0.85
    assert list(found["phases"]) and found["phases"]["Training"] > 0
    assert found["billable_seconds"] >= 1
    assert errors_and_warnings(notebook) == []
    assert "no change" in text_of(notebook)


@pytest.mark.timeout(600)
@pytest.mark.skipif(not horovod_status().available, reason=str(horovod_status()))
def test_lesson_05(run_lesson):
    found, notebook = run_lesson("05")
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
        execute(copy, tmp_path / "copy.ipynb", SMALLER | {"epochs": 2}, cell_seconds=280)


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
