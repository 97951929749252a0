"""What `python -m tools.sync` makes; that nothing is out of step, `make lint` checks."""

import json
import re

import nbformat

from tools.sync import as_notebook, everything, out_of_step
from workshop.paths import ROOT, SDK_V3


def test_an_edit_of_either_form_is_noticed(tmp_path):
    source, pair = tmp_path / "00_x.py", tmp_path / "00_x.ipynb"
    source.write_text("# %% [markdown]\n# # Title\n\n# %%\nx = 1\n")
    pair.write_text(as_notebook(source))
    assert not out_of_step(everything(("00",), tmp_path))
    source.write_text(source.read_text().replace("x = 1", "x = 2"))
    assert out_of_step(everything(("00",), tmp_path)) == [pair]
    pair.unlink()
    assert out_of_step(everything(("00",), tmp_path)) == [pair]


def test_a_notebook_keeps_the_outputs_of_deterministic_cells_alone(tmp_path):
    source, pair = tmp_path / "00_x.py", tmp_path / "00_x.ipynb"
    source.write_text('# %% tags=["deterministic"]\nx = 1\n\n# %%\ny = 2\n')
    notebook = nbformat.reads(as_notebook(source), as_version=4)
    for cell in notebook.cells:
        cell.outputs = [
            nbformat.v4.new_output("stream", text="1\n"),
            nbformat.v4.new_output("execute_result", {"text/plain": "1", "image/png": "x"}),
        ]
    nbformat.write(notebook, pair)
    source.write_text(source.read_text().replace("x = 1", "z = 1"))
    first, second = nbformat.reads(as_notebook(source), as_version=4).cells
    assert first.source == "z = 1" and first.outputs[0].text == "1\n"
    assert dict(first.outputs[1].data) == {"text/plain": "1"} and second.outputs == []


def test_the_lesson_for_version_3_has_a_kernel_of_its_own_which_the_courses_papermill_can_talk_to():
    notebook = SDK_V3 / "sdk_v3.ipynb"
    assert json.loads(notebook.read_text())["metadata"]["kernelspec"]["name"] == "sdk-v3"
    theirs = (SDK_V3 / "requirements.txt").read_text()
    (pinned,) = re.findall(r"^ipykernel==\S+", theirs, re.MULTILINE)
    assert f"\n{pinned} " in (ROOT / "tools" / "requirements" / "lock.txt").read_text()
