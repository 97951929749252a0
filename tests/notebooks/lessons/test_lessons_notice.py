"""A job that ends well and has trained nothing: a lesson must not call that right."""

import shutil

import lesson_runs
import nbformat
import pytest

from local_sagemaker.pytest_plugin import emulator
from workshop.course.execute import NotebookFailed
from workshop.course.lessons import chosen
from workshop.launch.horovod import horovod_status
from workshop.paths import DEMOS, TRAIN

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
needs_horovod = pytest.mark.skipif(not horovod_status().available, reason=str(horovod_status()))
# Prints what the right script prints for the lesson, and then trains as the broken one.
PRETENDS = """
import runpy
import json, os
from common.report import emit

task = json.loads(os.environ["TF_CONFIG"])["task"]
if task["type"] == "worker":
    emit(event="shard", worker=task["index"], examples=700, classes=[0, 2, 4, 6, 8], cluster={})
else:
    emit(event="variable", name="dense/kernel:0", bytes=32768, ps=0, device="CPU")
    emit(event="epoch", epoch=1, train_loss=2, mean_staleness=1, step_seconds=1, test_accuracy=0.1)
runpy.run_path("train_tf_ps_broken.py", run_name="__main__")
"""


@pytest.fixture
def scripts(tmp_path):
    """A folder of all scripts, to be broken."""
    copy = tmp_path / "scripts"
    for folder in (TRAIN, DEMOS):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(folder, copy, ignore=ignored, dirs_exist_ok=True)
    return copy


def changed(number: str, old: str, new: str) -> nbformat.NotebookNode:
    """A lesson with a piece of its code replaced, which must be there once."""
    (lesson,) = chosen((number,))
    notebook = nbformat.read(lesson, as_version=4)
    (cell,) = (cell for cell in notebook.cells if old in cell.source)
    cell.source = cell.source.replace(old, new)
    return notebook


def fails(notebook: nbformat.NotebookNode, folder, message: str, **parameters) -> None:
    """Execute a notebook, which must fail and say so."""
    nbformat.write(notebook, folder / "changed.ipynb")
    running = emulator(folder / "state", lesson_runs.AS_A_LEARNER)
    with running, pytest.raises(NotebookFailed, match=message):
        lesson_runs.run(folder / "changed.ipynb", folder / "copy.ipynb", **parameters)


def without(notebook: nbformat.NotebookNode, first: str, following: str) -> None:
    """Remove the sections from the title `first` up to the title `following`."""
    titles = [cell.source.split("\n")[0] for cell in notebook.cells]
    notebook.cells[titles.index(first) : titles.index(following)] = []


@needs_horovod
@pytest.mark.soak
def test_lesson_05_notices_ranks_that_do_not_average(scripts, tmp_path):
    script = scripts / "train_tf_horovod.py"
    lines = script.read_text().splitlines()
    script.write_text("\n".join(line for line in lines if "DistributedGradientTape" not in line))
    lesson = changed("05", "source = DEMOS if", f"source = '{scripts}' if TRAIN else DEMOS if")
    without(lesson, "## The result first: one script, four places", "## What `fit()` sent")
    smaller = lesson_runs.SMALL["05"] | {"epochs": 2}
    fails(lesson, tmp_path, "4 different sets of weights", **smaller)


@pytest.mark.soak
def test_lesson_03_notices_workers_that_train_alone(scripts, tmp_path):
    """No strategy: the job ends well, its log says all that it should, and the lesson must not."""
    (scripts / "train_tf_ps.py").write_text(PRETENDS)
    settings = 'session.job_settings("servers")'
    lesson = changed("03", settings, f'({settings} | {{"source_dir": "{scripts}"}})')
    without(lesson, "## One process holds the weights", "## The same in TensorFlow, as a job")
    smaller = lesson_runs.SMALL["03"] | {"instance_count": 2}
    fails(lesson, tmp_path, r"know \[5, 5\] of 10 digits", **smaller)
