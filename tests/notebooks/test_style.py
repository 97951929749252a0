"""The rules for notebooks that a program can see."""

import ast
import json
import re
import statistics

import jupytext
import nbformat
import pytest

from workshop.course import exercises as generate
from workshop.course.lessons import lessons
from workshop.course.sync import as_notebook, everything, out_of_step
from workshop.lesson.quiz import load
from workshop.paths import NOTEBOOKS

LESSONS = lessons()
FORBIDDEN = re.compile(r"%%writefile|^\s*[!%]\s*(pip|conda|cat)\b|\bpip install\b", re.MULTILINE)
ACCOUNT = re.compile(r"(?<!\d)\d{12}(?!\d)")
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
HEADER = ("**Before:**", "**Time:**", "**Where it runs:**", "**Cost on AWS:**")
ORDER = (
    "## Set up",
    "## Exercises",
    "## Check yourself",
    "## Summary",
    "## Clean up",
    "## Next",
)
NUMBERS = {"00", "01", "02", "03", "04", "05", "06", "07", "08", "99"}
# A notebook of one concept has 18 to 35 cells. A lesson here is an afternoon's chapter: it has a
# job to describe, run and read besides its concept, and each of its three to six sections is
# why, code, what you should see, checkpoint. Beyond 60 it is two lessons.
CELLS = (18, 60)
MINUTES = (10, 60)


def read(path):
    return nbformat.read(path, as_version=4)


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def prose(notebook):
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def section(notebook, title):
    """The cells from a second-level heading to the next one; a heading may be inside a cell."""
    found, inside = [], False
    for cell in notebook.cells:
        parts = re.split(r"^(?=## )", cell.source, flags=re.MULTILINE)
        for part in parts if cell.cell_type == "markdown" else [cell.source]:
            if cell.cell_type == "markdown" and part.startswith("## "):
                inside = part.splitlines()[0] == title
            if inside and part:
                found.append(part)
    return found


def links(path):
    """Where the links of a notebook lead, those inside the course."""
    found = LINK.findall(prose(read(path)))
    return [one.split("#")[0] for one in found if not one.startswith(("https://", "#"))]


PAGES = sorted([*LESSONS, *(path for path in NOTEBOOKS.glob("*/*.ipynb"))])
lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
page = pytest.mark.parametrize("path", PAGES, ids=lambda path: f"{path.parent.name}-{path.stem}")


def test_all_lessons_are_there():
    assert {path.stem[:2] for path in LESSONS} >= NUMBERS
    assert all(path.with_suffix(".py").is_file() for path in LESSONS)


def test_what_has_a_source_is_in_step_with_it():
    stale = [str(path.relative_to(NOTEBOOKS)) for path in out_of_step(everything())]
    assert not stale, f"{stale}: run `python -m workshop.course.sync`"


def test_what_has_no_source_any_more_is_gone():
    pages = {path for path in NOTEBOOKS.glob("*/*.ipynb")} | set(NOTEBOOKS.glob("*.ipynb"))
    assert pages == {path for path in everything() if path.suffix == ".ipynb"}


def test_an_edit_of_either_form_is_noticed(tmp_path):
    source, pair = tmp_path / "00_x.py", tmp_path / "00_x.ipynb"
    source.write_text("# %% [markdown]\n# # Title\n\n# %%\nx = 1\n")
    pair.write_text(as_notebook(source))
    assert not out_of_step(everything(("00",), tmp_path))
    source.write_text(source.read_text().replace("x = 1", "x = 2"))
    assert out_of_step(everything(("00",), tmp_path)) == [pair]
    pair.unlink()
    assert out_of_step(everything(("00",), tmp_path)) == [pair]


@lesson
def test_jupytext_reads_both_forms_alike(path):
    pair = jupytext.read(path.with_suffix(".py"))
    assert [cell.source for cell in pair.cells] == [cell.source for cell in read(path).cells]


@page
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
    minutes = re.search(r"\*\*Time:\*\* (\d+) minutes", first)
    assert minutes and MINUTES[0] <= int(minutes[1]) <= MINUTES[1]


@lesson
def test_the_sections_are_in_order(path):
    text = prose(read(path))
    titles = re.findall(r"^## .+$", text, re.MULTILINE)
    assert titles[:1] == [ORDER[0]], "the lesson begins with its set-up"
    assert titles[-5:] == list(ORDER[1:]), "and ends with these, in this order"
    assert len(titles) > len(ORDER), "between them it has sections of its own"
    assert len(set(titles)) == len(titles), "two sections have one name"


@lesson
def test_something_is_predicted_and_compared(path):
    text = "\n".join(cell.source for cell in code(read(path)))
    assert "workshop.guess(" in text
    assert ".compare(" in text, "a guess is worth something when the measurement stands beside it"


@lesson
def test_the_lesson_has_its_exercises_and_links_to_them(path):
    source = NOTEBOOKS / "solutions" / f"{path.stem}.py"
    assert source.is_file(), "the source of the exercises"
    text = "\n".join(section(read(path), "## Exercises"))
    assert f"(exercises/{path.name})" in text
    for one in generate.exercises(source):
        assert f"{one.minutes} minutes" in text, f"{one.number} and its minutes are not named"


@lesson
def test_the_lesson_has_its_quiz(path):
    asked = section(read(path), "## Check yourself")[1:]
    assert asked == [f'workshop.quiz("{path.stem[:2]}")']
    assert len(load(path.stem[:2])) == 3


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
    read_by_people = [
        one for one in notebook.cells if "results" not in one.metadata.get("tags", [])
    ]
    assert CELLS[0] <= len(read_by_people) <= CELLS[1], len(read_by_people)


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


@page
def test_nothing_is_written_installed_or_pasted(path):
    text = json.dumps([cell.source for cell in read(path).cells])
    for cell in code(read(path)):
        assert not FORBIDDEN.search(cell.source), cell.source
    assert not ACCOUNT.search(text), "an account number"
    assert "/home/" not in text and "/root/" not in text


@page
def test_links_lead_somewhere(path):
    assert [one for one in links(path) if not (path.parent / one).is_file()] == []


@pytest.mark.parametrize(
    "text", ["%%writefile a.py", "!pip install x", "%pip install x", "  ! cat a.py"]
)
def test_the_forbidden_is_seen(text):
    assert FORBIDDEN.search(text)
    assert not FORBIDDEN.search("session.client('s3')")
