"""Which cells of a lesson are on its slides. tests/browser looks at the decks themselves."""

import ast
import json
import re
import shutil

import nbformat
import pytest
from bs4 import BeautifulSoup

from tools.slides import BEGINS, NoRun, build, chosen, lesson_cells, slides, write_deck
from workshop.course.lessons import lessons

NEW = nbformat.v4
FETCHED = '[src]:not([src^="data:"]), link'


def cell(source, kind=None, outputs=None, **metadata):
    metadata |= {"slideshow": {"slide_type": kind}} if kind else {}
    if outputs is None:
        return NEW.new_markdown_cell(source, metadata=metadata)
    return NEW.new_code_cell(source, outputs=outputs, metadata=metadata)


def printed(text):
    return NEW.new_output("stream", text=text)


@pytest.fixture
def deck(tmp_path):
    """deck(cells): what each slide of a lesson 00 with these cells says."""

    def written(*cells):
        nbformat.write(NEW.new_notebook(cells=list(cells)), tmp_path / "00_x.ipynb")
        write_deck(list(chosen(tmp_path / "00_x.ipynb")), tmp_path / "00_x.html")
        page = BeautifulSoup((tmp_path / "00_x.html").read_text(), "html.parser")
        return [" ".join(s.get_text(" ").split()) for s in page.select("section > section")]

    return written


TITLE = cell("# 00 · A title\n\n- a goal\n\n**Before:** nothing", "slide")


def test_only_chosen_cells_are_on_slides_each_below_its_sections_heading(deck):
    texts = deck(
        TITLE,
        cell("## One\n\nnot chosen"),
        cell("# why\nx", "slide", [printed("chosen")]),
        cell("x", "-", [printed("beside it")]),
        cell("x", None, [printed("left out")]),
        cell("## Two\n\na question", "slide"),
        cell("x", "fragment", [printed("its answer")]),
        cell("more", "subslide"),
    )
    assert texts == [
        "00 · A title a goal",
        "One chosen beside it",
        "Two a question its answer",
        "Two more",
    ]


def test_a_cell_shows_its_outputs_and_its_code_only_where_it_has_none(deck):
    first, second = deck(
        TITLE, cell("code(1)", "-", []), cell("code(2)", "slide", [printed("result")])
    )
    assert "code ( 1 )" in first and second == "result"


def test_a_quiz_is_one_question_and_a_guess_has_the_guides_words_as_notes(deck):
    _, quiz, guess = deck(
        TITLE,
        cell('workshop.quiz("00")', "slide", [printed("all")], question=3),
        cell("guess = workshop.guess(longest=1)", "slide", [printed("Which phase?")]),
    )
    assert "150 s in Starting" in quiz and "Right. Only the 20 s" in quiz and "kernel" not in quiz
    assert guess.startswith("Which phase?") and "longest : people guess Training. Here" in guess


@pytest.mark.parametrize("path", lessons(), ids=lambda path: path.stem[:2])
def test_each_lesson_has_a_deck(path, tmp_path):
    cells = lesson_cells(path)
    write_deck(cells, tmp_path / "deck.html")
    page = BeautifulSoup((tmp_path / "deck.html").read_text(), "html.parser")
    assert 8 <= len(page.select("section > section")) == slides(cells) <= 20
    assert not page.select(FETCHED)
    assert not re.search(r"@import|url\(.?http", " ".join(s.text for s in page.select("style")))
    assert sum("question" in c.metadata for c in cells) == 1
    assert cells[-1].source.startswith("## Exercise ")


@pytest.mark.parametrize("path", lessons(), ids=lambda path: path.stem[:2])
def test_each_guess_on_a_slide_is_answered_on_a_later_one(path):
    at, waiting = 0, {}
    for shown in lesson_cells(path):
        at += shown.metadata.slideshow.slide_type in BEGINS
        tree = ast.parse(shown.source if shown.cell_type == "code" else "")
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            names = [keyword.arg for keyword in call.keywords]  # None: **all
            if ast.unparse(call.func) == "workshop.guess":
                assert not waiting, "asked again before the answer"
                waiting = dict.fromkeys(names, at)
            if ast.unparse(call.func) == "guess.compare":
                for name in list(waiting) if None in names else names:
                    assert waiting.pop(name) < at
    assert not waiting


def test_decks_for_lessons_and_timetables_are_built_from_what_was_run(tmp_path):
    run, out = tmp_path / "run", tmp_path / "out"
    run.mkdir()
    with pytest.raises(NoRun, match="run `make run` first"):
        build(run, out)
    about = {"date": "2026-11-22", "commit": "abc", "machine": "2 cores"}
    (run / "run.json").write_text(json.dumps(about))
    shutil.copy(lessons()[0], run)
    index, missing = build(run, out)
    assert missing == [path.stem for path in lessons()[1:]]
    names = ["00_setup", "half-a-day", "a-day", "two-days"]
    assert re.findall(r'href="(.*).html"', index.read_text()) == names
    for name in names:
        assert "Measured on 2026-11-22, commit abc, 2 cores" in (out / f"{name}.html").read_text()
    page = BeautifulSoup((out / "half-a-day.html").read_text(), "html.parser")
    headings = [heading.get_text() for heading in page.select("h1, h2")]
    order = ["Half a day", "Welcome", "00 · Set up", "Describe the job", "01, its core"]
    order += ["Exercise 01.1", "Exercise 01.1 · Equal shards", "Break", "Questions"]
    rest = iter(headings)
    assert all(any(heading.startswith(start) for heading in rest) for start in order)
