"""Lesson 03, executed with smaller numbers; and with a job whose workers train alone."""

import shutil

import nbformat
import pytest

from notebook_harness import SMALLER, errors_and_warnings
from workshop.course.execute import NotebookFailed, execute
from workshop.course.lessons import chosen
from workshop.paths import SCRIPTS

pytestmark = pytest.mark.slow

FEWER = {"steps": 110, "epochs": 6, "expected_accuracy": 0.85}
# Prints what the right script prints for the lesson, and then trains as the broken one.
PRETENDS = """
import runpy
from common import cluster_tf
from common.report import emit

cluster = cluster_tf.read_cluster()
if cluster.task_type == "worker":
    emit(event="shard", worker=cluster.task_index, examples=700, classes=[0, 2, 4, 6, 8])
else:
    emit(event="variable", name="dense/kernel:0", bytes=32768, ps=0)
    emit(event="epoch", epoch=1, train_loss=2, mean_staleness=1, step_seconds=1, test_accuracy=0.1)
runpy.run_path("train_tf_ps_broken.py", run_name="__main__")
"""


@pytest.mark.timeout(900)
def test_lesson_03(run_lesson):
    found, notebook = run_lesson("03", **FEWER)
    # A server that waits trains what one process trains; one that does not has stale gradients.
    assert found["sync_difference"] < 1e-4
    assert found["sync_staleness"] == 0
    assert found["async_staleness"] == pytest.approx(3, abs=0.2)
    assert found["most_stale"] > 3
    assert found["slow_share"] < 0.25 and found["speed_up"] > 1
    slowest = found["stale_by_worker"].pop("4")
    assert slowest > max(found["stale_by_worker"].values())
    accuracy = found["accuracy_by_way"]
    assert accuracy["async"][1] < accuracy["small updates, not stale"][1]
    # The bytes grow with the workers, 1, 2 and 4 of them, as the formula says.
    one, two, four = found["kb_at_server"]
    assert (two / one, four / one) == (pytest.approx(2, rel=0.02), pytest.approx(4, rel=0.02))
    assert found["computed_kb"] == pytest.approx(found["kb_at_server"], rel=0.1)
    # Each host runs a server; all but the first train.
    assert found["tasks"] == {"algo-1": "master", "algo-2": "worker", "algo-3": "worker"}
    assert found["trains"] == 2 and found["servers"] == 3
    assert set(found["variables_by_ps"]) == {"0", "1", "2"}
    # The workers of the one job train one model; those of the other do not, and it ends well.
    broken, synced = list(found["known"][:2]), found["known"][2:]
    assert broken == [5, 5] and synced == [10]
    assert found["accuracy"] >= 0.85 and max(found["broken_accuracy"]) < 0.6
    assert found["broken_status"] == "Completed" and found["broken_weights"] == 2
    assert errors_and_warnings(notebook) == []


@pytest.mark.timeout(600)
def test_lesson_03_notices_workers_that_train_alone(run_lesson, tmp_path):
    """No strategy: the job ends well, its log says all that it should, and the lesson must not."""
    scripts = tmp_path / "scripts"
    shutil.copytree(SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
    (scripts / "train_tf_ps.py").write_text(PRETENDS)
    (path,) = chosen(("03",))
    notebook = nbformat.read(path, as_version=4)
    titles = [cell.source.split("\n")[0] for cell in notebook.cells]
    first = titles.index("## One process holds the weights")
    notebook.cells[first : titles.index("## The same in TensorFlow, as a job")] = []
    settings, changed = 'session.job_settings("servers")', 0
    for cell in notebook.cells:
        changed += settings in cell.source
        cell.source = cell.source.replace(settings, f'({settings} | {{"source_dir": "{scripts}"}})')
    assert changed == 1
    nbformat.write(notebook, tmp_path / path.name)
    smaller = SMALLER | FEWER | {"instance_count": 2}
    with pytest.raises(NotebookFailed, match=r"know \[5, 5\] of 10 digits"):
        execute(tmp_path / path.name, tmp_path / "copy.ipynb", smaller, cell_seconds=280)
