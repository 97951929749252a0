"""Notebooks of the tests' own, and an endpoint that only they use."""

import nbformat
import pytest

from local_sagemaker import daemon


@pytest.fixture(scope="module")
def own_state(tmp_path_factory):
    """A state directory of its own; whatever endpoint is up there at the end is ended."""
    with pytest.MonkeyPatch.context() as patch:
        state = tmp_path_factory.mktemp("state")
        patch.setenv("LOCAL_SAGEMAKER_STATE_DIR", str(state))
        yield state
        daemon.stop(state)


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
