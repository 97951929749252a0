"""The appendix's lesson: its form, and that its environment fits the course's.

`make sdk-v3` runs it.
"""

import ast
import re

import nbformat
import pytest

from workshop.course import sync
from workshop.paths import APPENDIX, ROOT

SOURCE = APPENDIX / "sdk_v3" / "sdk_v3.py"
NOTEBOOK = SOURCE.with_suffix(".ipynb")


@pytest.fixture(scope="module")
def notebook():
    return nbformat.read(NOTEBOOK, as_version=4)


@pytest.fixture(scope="module")
def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_it_is_in_step_with_its_source_and_sync_knows_it():
    assert sync.appendix() == {NOTEBOOK: NOTEBOOK.read_text()}


def test_it_has_the_parts_of_a_lesson(notebook, code):
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    for part in ("**Time:**", "**Cost on AWS:**", "## Set up", "## Summary", "## Clean up"):
        assert part in prose
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    assert all(len(cell.source.splitlines()) <= 25 for cell in code)
    assert sum("assert " in cell.source for cell in code) >= 5
    (parameters,) = (cell for cell in code if "parameters" in cell.metadata.get("tags", []))
    for line in ast.parse(parameters.source).body:
        ast.literal_eval(line.value)


def test_it_has_a_kernel_of_its_own(notebook):
    assert notebook.metadata.kernelspec.name == "sdk-v3"


def test_its_links_lead_somewhere(notebook):
    text = "\n".join(cell.source for cell in notebook.cells)
    pages = [text, (SOURCE.parent / "README.md").read_text()]
    found = [one for page in pages for one in re.findall(r"\]\((?!https?:)([^)\s#]+)", page)]
    assert found and all((SOURCE.parent / one).exists() for one in found)
    assert "(appendix/sdk_v3/sdk_v3.ipynb)" in (ROOT / "README.md").read_text()


def test_the_kernels_version_is_the_courses():
    """papermill's client here talks to the kernel there."""
    pinned = re.findall(r"^ipykernel==\S+", (SOURCE.parent / "requirements.txt").read_text(), re.M)
    assert len(pinned) == 1
    assert f"\n{pinned[0]} " in (ROOT / "requirements" / "lock.txt").read_text()
