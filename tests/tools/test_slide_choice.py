"""Which cells of an executed lesson become slides. tests/browser looks at the decks themselves."""

from __future__ import annotations

import re

import nbformat
import pytest
from bs4 import BeautifulSoup

from tools import slides
from tools.slides import NoRun, build, slides_of, write_deck
from workshop.course.pages import READER

NEW = nbformat.v4
IMAGE = '<img alt="Two bars" src="data:image/png;base64,iVBORw0KGgo=">'
TABLE = "<table><tbody><tr><td>{}</td></tr></tbody></table>"
ASKS = f"{READER}\n\nHow many?\n" + 20 * "\nline"


def shown(**data):
    return NEW.new_output(
        "display_data", {name.replace("_", "/"): content for name, content in data.items()}
    )


def printed(text):
    return NEW.new_output("stream", text=text)


def code(*outputs, tags=()):
    cell = NEW.new_code_cell("x", execution_count=1, outputs=list(outputs))
    cell.metadata["tags"] = list(tags)
    return cell


def lesson():
    """A guess, code, a picture, a table, lines, an answer; and what is left out."""
    text = NEW.new_markdown_cell
    diff = "From [a](a.py) to b\n\n```diff\n+line\n```"
    cells = [
        text("# 07 · A title\n\n**After this lesson you can**\n\n- do this;\n- do that.\n\nMore"),
        text("## Set up\n\nNothing to see."),
        code(printed("left out")),
        text("## Two links\n\n> A quotation.\n\nWhy [it](x.py) matters:\n\n- one\n- two\n\nMore."),
        code(printed(ASKS)),
        code(shown(text_markdown=diff)),
        code(shown(text_html=IMAGE), shown(text_html=TABLE.format("first")), printed("40 %\n")),
        code(printed("About 20 s ...\nafter the repair")),
        code(printed("workshop-me-storage: created, 0.2 s\n")),
        code(printed(40 * "long\n")),
        code(printed("folded"), tags=["results"]),
        code(shown(text_html=TABLE.format("the answer"))),
        text("So that was it.\n\n## A line\n\nShort."),
        code(printed("94 % right")),
        text("## Nothing\n\n"),
        text("## Summary\n\n- point 1\n- point 2"),
        text("## Clean up\n\nGone."),
    ]
    return NEW.new_notebook(cells=cells)


def test_a_section_gives_its_question_and_a_slide_for_each_thing_that_it_shows():
    cells = list(slides_of(lesson()))
    marked = [cell.source.split("\n")[0] for cell in cells if "slideshow" in cell.metadata]
    assert marked == [*8 * ["## Two links"], *2 * ["## A line"], "## Summary"]
    question = cells[0].source
    assert "matters" in question and "two" in question
    assert "quotation" not in question and "More" not in question


def test_a_deck_shows_what_the_cells_show_and_no_progress(tmp_path):
    nbformat.write(lesson(), tmp_path / "07_x.ipynb")
    title, count = write_deck(tmp_path / "07_x.ipynb", tmp_path / "07_x.html", "Measured here")
    page = BeautifulSoup((tmp_path / "07_x.html").read_text(), "html.parser")
    decks = [" ".join(slide.get_text(" ").split()) for slide in page.select("section")]
    assert title == "07 · A title" and count == len(decks) == 12
    assert "do that" in decks[0] and "Measured here" in decks[0] and "More" not in decks[0]
    assert "Write it down before you read on" in decks[2] and "How many?" in decks[2]
    assert "+line" in decks[3] and page.select("section img")[0]["alt"] == "Two bars"
    assert "first" in decks[5] and "40 %" in decks[6]
    assert "after the repair" in decks[7] and "About" not in decks[7]
    assert "the answer" in decks[8] and "94 % right" in decks[10]
    assert not re.search("left out|created|long|folded|quotation", " ".join(decks))


def test_decks_are_built_for_what_was_run_and_hold_all_that_they_need(tmp_path, monkeypatch):
    run, out = tmp_path / "run", tmp_path / "out"
    run.mkdir()
    with pytest.raises(NoRun, match="run `make run` first"):
        build(run, out)
    names = [run / "07_x.ipynb", run / "08_y.ipynb"]
    monkeypatch.setattr(slides, "lessons", lambda: names)
    nbformat.write(lesson(), names[0])
    (run / "run.json").write_text('{"date": "2026-11-22", "commit": "abc", "machine": "2 cores"}')
    index, missing = build(run, out)
    assert missing == ["08_y"] and 'href="07_x.html"' in index.read_text()
    deck = (out / "07_x.html").read_text()
    assert "Measured on 2026-11-22, commit abc, 2 cores" in deck and "do that" in deck
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="(?!data:)', deck)
