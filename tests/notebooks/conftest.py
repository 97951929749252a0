"""Notebooks of the tests' own, and an endpoint that only they use."""

import os

import nbformat
import pytest

from local_sagemaker import daemon
from notebook_harness import SMALLER
from workshop.course.execute import execute
from workshop.course.lessons import chosen
from workshop.lesson.results import read_results, without_compare


@pytest.fixture(scope="module")
def own_state(tmp_path_factory):
    """A state directory of its own; whatever endpoint is up there at the end is ended."""
    with pytest.MonkeyPatch.context() as patch:
        state = tmp_path_factory.mktemp("state")
        patch.setenv("WORKSHOP_STATE_DIR", str(state))
        yield state
        daemon.stop(state)


@pytest.fixture
def without_horovod(tmp_path, monkeypatch):
    """In this process and in those that it starts, Horovod is a package without a library."""
    shadow = tmp_path / "shadow"
    (shadow / "horovod").mkdir(parents=True)
    (shadow / "horovod" / "__init__.py").write_text("")  # found first
    monkeypatch.syspath_prepend(shadow)
    before = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(shadow), before])))


@pytest.fixture
def write_notebook(tmp_path):
    """Write NN_name.ipynb with a parameters cell and more code cells; return its path."""

    def write(name, *cells):
        parameters = nbformat.v4.new_code_cell('target = "local"\nvalue = 1')
        parameters.metadata["tags"] = ["parameters"]
        notebook = nbformat.v4.new_notebook(
            cells=[parameters, *map(nbformat.v4.new_code_cell, cells)],
            metadata={"kernelspec": {"name": "python3", "display_name": "x", "language": "python"}},
        )
        path = tmp_path / "lessons" / f"{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        nbformat.write(notebook, path)
        return path

    return write


@pytest.fixture(scope="module")
def run_lesson(own_state, tmp_path_factory):
    """Execute a lesson by its number; return its recorded results and its executed copy.

    Keyword arguments are the lesson's parameters; one that it has not is an error.
    """
    daemon.start(own_state, 0)
    out = tmp_path_factory.mktemp("build")

    def run(number, **parameters):
        (path,) = chosen((number,))
        execute(path, out / path.name, SMALLER | parameters, cell_seconds=280)
        found = read_results(out / path.name)
        assert found["guesses"], "the lesson asks for no guess"
        assert without_compare(found) == [], "asked for a guess, and never answered it"
        return found, nbformat.read(out / path.name, as_version=4)

    return run
