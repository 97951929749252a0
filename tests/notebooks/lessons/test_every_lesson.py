"""What holds of every executed lesson: no complaints, and what its deterministic cells show.

A cell tagged `deterministic` shows the same on every machine and in every run, and the committed
notebook has its output. Where a lesson is to show something else now:

    RECORD=1 pytest tests/notebooks/lessons/test_every_lesson.py    # and look at what changed
"""

import copy
import os
import re

import nbformat
import pytest
from course_text import cells, lessons, read
from lesson_runs import SMALL

from tools import sync

LESSONS = lessons()
DETERMINISTIC = [
    number
    for number, path in LESSONS.items()
    if any("deterministic" in cell.tags for cell in cells(read(path)))
]
# A path, an object's address, an account, a time: another one on another machine or day.
OF_ONE_RUN = re.compile(r"/home/|/root/|/tmp/|0x[0-9a-f]{6}|\d{12}|\bseconds\b|\d\d:\d\d:\d\d")
IMAGE = re.compile(r"<(?:img|svg)\b[^>]*>")
SAID = re.compile(r"""\b(?:alt|aria-label|aria-labelledby|aria-hidden)=(["'])(?!\s*\1)""")
MARKDOWN_IMAGE = re.compile(r"!\[[^\]]*\]\(")
pytestmark = [pytest.mark.reads_lessons, pytest.mark.timeout(1500)]


def test_every_lesson_has_its_small_numbers():
    assert list(SMALL) == list(LESSONS)


def pictures_without_text(notebook: nbformat.NotebookNode) -> list[str]:
    """The pictures in outputs, and in texts, that say nothing to a screen reader.

    A picture of image/png is one: JupyterLab shows it without a text. See workshop/plots/look.py.
    """
    pictures = []
    for cell in notebook.cells:
        data = [output.get("data", {}) for output in cell.get("outputs", [])]
        pictures += [mime for bundle in data for mime in bundle if mime.startswith("image/")]
        texts = ["".join(bundle.get("text/html", "")) for bundle in data]
        texts += [cell.source] if cell.cell_type == "markdown" else []
        for text in texts:
            pictures += [tag[:80] for tag in IMAGE.findall(text) if not SAID.search(tag)]
            pictures += [tag for tag in MARKDOWN_IMAGE.findall(text) if tag.startswith("![]")]
    return pictures


@pytest.mark.parametrize("number", LESSONS)
def test_a_lesson_runs_to_its_end_without_complaint(lesson_run, number):
    assert lesson_run(number).complaints == []


@pytest.mark.parametrize("number", LESSONS)
def test_every_picture_has_a_text_for_those_who_cannot_see_it(lesson_run, number):
    assert pictures_without_text(lesson_run(number).notebook) == []


@pytest.mark.parametrize("number", LESSONS)
def test_every_guess_is_answered(lesson_run, number):
    results = lesson_run(number).results
    assert results["guesses"], "the lesson asks for no guess"
    assert all(results["guesses"].values()), "asked for a guess, never showed what was measured"


@pytest.mark.parametrize("number", DETERMINISTIC)
def test_deterministic_cells_show_what_the_notebook_shows(lesson_run, number):
    path, executed = LESSONS[number].with_suffix(".ipynb"), lesson_run(number).notebook
    committed = nbformat.read(path, as_version=4)
    actual = copy.deepcopy(committed)
    sync.copy_outputs(executed, actual)
    if os.environ.get("RECORD"):
        path.write_text(sync.as_text(actual))
        committed = actual
    shown = [cell.outputs for cell in sync.deterministic_cells(actual)]
    assert all(shown), "a deterministic cell shows nothing"
    assert not OF_ONE_RUN.search(str(shown)), shown
    assert shown == [cell.outputs for cell in sync.deterministic_cells(committed)]
