"""Which cells of an executed lesson become slides. tests/browser looks at the decks themselves."""

from __future__ import annotations

import re

import nbformat
import pytest

from tools import slides
from tools.slides import NoRun, build, slides_of

NEW = nbformat.v4
IMAGE = '<img alt="Two bars" src="data:image/png;base64,iVBORw0KGgo=">'
TABLE = "<table><tbody><tr><td>{}</td></tr></tbody></table>"


def shown(**data):
    return NEW.new_output(
        "display_data", {name.replace("_", "/"): one for name, one in data.items()}
    )


def saved(**values):
    return NEW.new_output("display_data", {"application/vnd.workshop.results+json": values})


def printed(text):
    return NEW.new_output("stream", text=text)


def code(*outputs, tags=()):
    cell = NEW.new_code_cell("x", execution_count=1, outputs=list(outputs))
    cell.metadata["tags"] = list(tags)
    return cell


def lesson():
    """One section with a guess, pictures, tables and lines; one with a line; those left out."""
    text = NEW.new_markdown_cell
    row = {"your guess": "-", "measured": "3 < 4", "off by": "-"}
    cells = [
        text("# 07 · A title\n\n**After this lesson you can**\n\n- do this;\n- do that.\n\nMore"),
        text("## Set up\n\nNothing to see."),
        code(printed("left out")),
        text("## Two links\n\n> A quotation.\n\nWhy [it](x.py) matters:\n\n- one\n- two\n\nMore."),
        code(saved(guesses={"How many?": False}), printed("What is your guess?\n\nHow many?")),
        code(shown(text_html=IMAGE), shown(text_html=TABLE.format("old"))),
        code(shown(text_html=TABLE.format("new")), printed("two tiers: 1.5 times\n")),
        code(printed("workshop-me-storage: created, 0.2 s\n")),
        code(printed("folded"), tags=["results"]),
        code(
            shown(text_html=TABLE.format("question")),
            saved(guesses={"How many?": True}, answers={"How many?": row}),
        ),
        text("So that was it.\n\n## A line\n\nShort."),
        code(printed("94 % right")),
        text("## Nothing\n\n"),
        text("## Summary\n\n" + "\n".join(f"- point {at}" for at in range(9))),
        text("## Clean up\n\nGone."),
    ]
    return NEW.new_notebook(cells=cells)


def test_a_section_gives_its_question_its_pictures_and_its_result():
    found = list(slides_of(lesson()))
    assert [(one.kind, one.heading) for one in found] == [
        ("question", "Two links"),
        ("picture", "Two links"),
        ("result", "Two links"),
        ("answer", "Two links"),
        ("question", "A line"),
        ("summary", "Summary"),
        ("summary", "Summary"),
    ]
    question, picture, result, answer, line, first, second = (one.body for one in found)
    assert "Why it matters" in question and "two" in question and "How many?" in question
    assert "quotation" not in question and "More" not in question and "<a " not in question
    assert 'alt="Two bars"' in picture
    assert "new" in result and "two tiers: 1.5 times" in result
    assert not re.search("old|folded|created", result)
    assert "3 &lt; 4" in answer and "How many?" in answer
    assert "Short" in line and "94 % right" in line
    assert (first.count("<li>"), second.count("<li>")) == (7, 2)


def test_a_long_table_is_split_and_keeps_its_head():
    rows = "".join(f"<tr><td>row {at};</td></tr>" for at in range(2 * slides.ROWS + 1))
    page = f"<table><thead><tr><th>head</th></tr></thead><tbody>{rows}</tbody></table>"
    parts = slides._split_table(page)
    assert len(parts) == 3 and all("head" in part for part in parts)
    assert [part.count("row ") for part in parts] == [slides.ROWS, slides.ROWS, 1]
    assert all(
        sum(f"row {at};" in part for part in parts) == 1 for at in range(2 * slides.ROWS + 1)
    )


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
