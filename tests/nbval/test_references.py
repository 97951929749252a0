"""nbval on the lessons' deterministic cells: what they show now is what they showed."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import nbformat
import pytest

from local_sagemaker import daemon
from workshop.course import reference
from workshop.course.lessons import lessons

LESSONS = lessons()
WITH_REFERENCE = [path for path in LESSONS if reference.cut(path) is not None]
# A path, an object's address, an account, a time: another one on another machine or day.
OF_ONE_RUN = re.compile(r"/home/|/root/|/tmp/|0x[0-9a-f]{6}|\d{12}|\bseconds\b|\d\d:\d\d:\d\d")


def nbval(path, state):
    """Run nbval on a notebook, in a process and with an endpoint of its own."""
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-p"]
    command += ["no:cacheprovider", "--color=no", str(path)]
    variables = os.environ | {"WORKSHOP_STATE_DIR": str(state)}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=800)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def own_state(tmp_path_factory):
    """An endpoint that a lesson starts here is ended here."""
    state = tmp_path_factory.mktemp("state")
    yield state
    daemon.stop(state)


@pytest.fixture
def recorded(tmp_path):
    """A small lesson with one deterministic cell, and its reference; return both paths."""

    def write(*sources):
        cells = [nbformat.v4.new_code_cell(text) for text in sources]
        cells[-1].metadata["tags"] = [reference.TAG]
        lesson = tmp_path / "01_small.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells), lesson)
        folder = tmp_path / "references"
        folder.mkdir(exist_ok=True)
        if reference.out_of_step(lesson, folder):
            reference.write(lesson, folder)
        return lesson, folder / lesson.name

    return write


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("lesson", WITH_REFERENCE, ids=lambda path: path.stem)
def test_deterministic_cells_show_what_they_showed(lesson, own_state):
    cells = len(reference.cut(lesson).cells)
    code, said = nbval(reference.REFERENCES / lesson.name, own_state)
    assert code == 0, said
    assert re.search(rf"\b{cells} passed", said), said


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_references_are_in_step(lesson):
    message = "run `python -m workshop.course.reference`, and look at what changed"
    assert not reference.out_of_step(lesson), message


def test_there_are_deterministic_cells_and_no_other_references():
    assert len(WITH_REFERENCE) >= 2
    names = {path.name for path in WITH_REFERENCE}
    assert {path.name for path in reference.REFERENCES.glob("*.ipynb")} == names


@pytest.mark.parametrize("lesson", WITH_REFERENCE, ids=lambda path: path.stem)
def test_what_is_compared_is_text_of_every_machine(lesson):
    """nbval compares no pictures; a path or an object's address differs from run to run."""
    for cell in nbformat.read(reference.REFERENCES / lesson.name, as_version=4).cells:
        if reference.is_checked(cell):
            said = [one.get("text") or one.data.get("text/plain", "") for one in cell.outputs]
            assert "".join(said), f"a deterministic cell that shows nothing: {cell.source}"
            assert not OF_ONE_RUN.search("".join(said)), said


def test_another_output_is_noticed(recorded, own_state):
    _, path = recorded("ranks = 2", "unrelated = 0", "print(ranks * 3)")
    assert nbval(path, own_state)[0] == 0
    path.write_text(path.read_text().replace('"6\\n"', '"7\\n"'))
    code, said = nbval(path, own_state)
    assert code == 1 and "Cell outputs differ" in said


def test_another_lesson_is_noticed(recorded):
    lesson, path = recorded("ranks = 2", "print(ranks)")
    assert not reference.out_of_step(lesson, path.parent)
    lesson.write_text(lesson.read_text().replace("ranks = 2", "ranks = 4"))
    assert reference.out_of_step(lesson, path.parent)
    reference.write(lesson, path.parent)
    assert not reference.out_of_step(lesson, path.parent)
    lesson.write_text(lesson.read_text().replace(reference.TAG, "other"))
    assert reference.out_of_step(lesson, path.parent)
    reference.write(lesson, path.parent)
    assert not path.exists() and not reference.out_of_step(lesson, path.parent)


def test_only_what_a_deterministic_cell_needs_is_kept(tmp_path, recorded):
    sources = (
        "import json as j",
        "table = {}",
        "slow = 1",
        "table['ranks'] = 2",
        "def show(value):\n    return j.dumps(value)",
        "slow + 1",
        "show(table)",
    )
    _, path = recorded(*sources)
    kept = [cell.source for cell in nbformat.read(path, as_version=4).cells]
    assert kept == [one for one in sources if not one.startswith("slow")]
