"""The rules for notebooks that a program can see."""

import ast
import json
import re
import statistics

import jupytext
import nbformat
import pytest

from workshop.notebooks.lessons import lessons
from workshop.notebooks.sync import as_notebook, out_of_step, sources
from workshop.paths import NOTEBOOKS

LESSONS = lessons()
FORBIDDEN = re.compile(r"%%writefile|^\s*[!%]\s*(pip|conda|cat)\b|\bpip install\b", re.MULTILINE)
ACCOUNT = re.compile(r"(?<!\d)\d{12}(?!\d)")
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
HEADER = ("**Before:**", "**Time:**", "**Where it runs:**", "**Cost on AWS:**")
ORDER = ("## Set up", "## Run it", "## Try it", "## Summary", "## Clean up", "## Next")


def read(path):
    return nbformat.read(path, as_version=4)


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def prose(notebook):
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def test_there_are_lessons():
    assert {path.stem[:2] for path in LESSONS} >= {"00", "05"}


def test_py_and_ipynb_are_in_step():
    assert {path.stem for path in sources()} >= {path.stem for path in LESSONS}
    stale = [path.name for path in out_of_step()]
    assert not stale, f"{stale}: run `python -m workshop.notebooks.sync`"


def test_an_edit_of_either_form_is_noticed(tmp_path):
    source, pair = tmp_path / "00_x.py", tmp_path / "00_x.ipynb"
    source.write_text("# %% [markdown]\n# # Title\n\n# %%\nx = 1\n")
    pair.write_text(as_notebook(source))
    assert not out_of_step(tmp_path)
    assert as_notebook(source) == pair.read_text()
    source.write_text(source.read_text().replace("x = 1", "x = 2"))
    assert out_of_step(tmp_path) == [source]
    pair.unlink()
    assert out_of_step(tmp_path) == [source]


@lesson
def test_jupytext_reads_both_forms_alike(path):
    pair = jupytext.read(path.with_suffix(".py"))
    assert [cell.source for cell in pair.cells] == [cell.source for cell in read(path).cells]


@lesson
def test_no_outputs_are_committed(path):
    for cell in code(read(path)):
        assert not cell.outputs and cell.execution_count is None


@lesson
def test_the_header_says_what_a_learner_must_know(path):
    first = read(path).cells[0].source
    assert first.startswith(f"# {path.stem[:2]} · ")
    assert "you can**" in first
    assert 3 <= len(re.findall(r"^- ", first, re.MULTILINE)) <= 5
    for part in HEADER:
        assert part in first, f"the header lacks {part}"
    assert re.search(r"\*\*Time:\*\* \d+ minutes", first)


@lesson
def test_the_sections_are_in_order(path):
    text = prose(read(path))
    positions = [text.find(f"\n{title}\n") for title in ORDER]
    missing = [title for title, at in zip(ORDER, positions, strict=True) if at < 0]
    assert not missing
    assert positions == sorted(positions)


@lesson
def test_there_is_one_parameters_cell_of_plain_literals(path):
    tagged = [cell for cell in code(read(path)) if "parameters" in cell.metadata.get("tags", [])]
    assert len(tagged) == 1
    names = []
    for statement in ast.parse(tagged[0].source).body:
        assert isinstance(statement, ast.Assign), ast.unparse(statement)
        ast.literal_eval(statement.value)
        names += [target.id for target in statement.targets]
    assert {"target", "seat"} <= set(names)


@lesson
def test_cells_are_small(path):
    notebook = read(path)
    sizes = [len([line for line in cell.source.splitlines() if line]) for cell in code(notebook)]
    assert statistics.median(sizes) <= 6 and max(sizes) <= 25, sizes


@lesson
def test_assertions_say_what_to_mend(path):
    asserts = [
        node
        for cell in code(read(path))
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Assert)
    ]
    assert len(asserts) >= 3
    for node in asserts:
        assert node.msg is not None, ast.unparse(node)


@lesson
def test_nothing_is_written_installed_or_pasted(path):
    text = json.dumps([cell.source for cell in read(path).cells])
    for cell in code(read(path)):
        assert not FORBIDDEN.search(cell.source), cell.source
    assert not ACCOUNT.search(text), "an account number"
    assert "/home/" not in text and "/root/" not in text


@lesson
def test_links_lead_somewhere(path):
    for target in LINK.findall(prose(read(path))):
        if not target.startswith(("https://", "#")):
            assert (NOTEBOOKS / target.split("#")[0]).is_file(), target


@pytest.mark.parametrize(
    "text", ["%%writefile a.py", "!pip install x", "%pip install x", "  ! cat a.py"]
)
def test_the_forbidden_is_seen(text):
    assert FORBIDDEN.search(text)
    assert not FORBIDDEN.search("session.client('s3')")
