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
        "display_data", {name.replace("_", "/"): content for name, content in data.items()}
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
    """A guess that a later section answers, code, pictures, tables, lines; and what is left out."""
    text = NEW.new_markdown_cell
    row = {"your guess": "-", "measured": "3 < 4", "off by": "-"}
    asks = [["How many?", []], ["And which?", ["this", "that"]]]
    compared = {"And which?": False, "How many?": False}  # sorted, as in a notebook's file
    diff = (
        "From [a](a.py) to b\n\n```diff\n" + "\n".join(f"+line {at}" for at in range(30)) + "\n```"
    )
    diff += "\n\n<details><summary>The whole</summary>\n\n```diff\n+unseen\n```\n\n</details>"
    cells = [
        text("# 07 · A title\n\n**After this lesson you can**\n\n- do this;\n- do that.\n\nMore"),
        text("## Set up\n\nNothing to see."),
        code(printed("left out")),
        text("## Two links\n\n> A quotation.\n\nWhy [it](x.py) matters:\n\n- one\n- two\n\nMore."),
        code(saved(asked=asks, guesses=compared), printed("What is your guess?\n\nHow many?")),
        code(shown(text_markdown=diff)),
        code(shown(text_html=IMAGE), shown(text_html=TABLE.format("first"))),
        code(shown(text_html=TABLE.format("second")), printed("correct: 40 %\n"), printed("too\n")),
        code(printed("About 20 s ...\nafter the repair")),
        code(printed("and again")),
        code(printed("workshop-me-storage: created, 0.2 s\n")),
        code(printed("folded"), tags=["results"]),
        code(
            shown(text_html=TABLE.format("question")),
            saved(asked=asks, guesses=compared | {"How many?": True}, answers={"How many?": row}),
        ),
        text("So that was it.\n\n## A line\n\nShort."),
        code(printed("94 % right")),
        text("## The answer\n\nLate."),
        code(
            saved(
                asked=asks,
                guesses=compared | {"How many?": True, "And which?": True},
                answers={"And which?": row | {"measured": "that"}, "How many?": row},
            )
        ),
        text("## Nothing\n\n"),
        text("## Summary\n\n" + "\n".join(f"- point {at}" for at in range(9))),
        text("## Clean up\n\nGone."),
    ]
    return NEW.new_notebook(cells=cells)


def test_a_section_gives_its_question_what_it_shows_and_its_answers():
    slides = list(slides_of(lesson()))
    assert [(slide.kind, slide.heading) for slide in slides] == [
        ("question", "Two links"),
        ("result", "Two links"),
        ("result", "Two links"),
        ("picture", "Two links"),
        ("result", "Two links"),
        ("result", "Two links"),
        ("text", "Two links"),
        ("answer", "Two links"),
        ("question", "A line"),
        ("question", "The answer"),
        ("answer", "The answer"),
        ("summary", "Summary"),
        ("summary", "Summary"),
    ]
    bodies = [slide.body for slide in slides]
    question, code, more_code, picture, table, result, text, answer, line, _, late = bodies[:11]
    first, second = bodies[11:]
    assert "Why it matters" in question and "two" in question
    assert re.search(r"How many\?</p><p>And which\? · this · that<", question), "in order"
    assert "quotation" not in question and "More" not in question and "<a " not in question
    assert "From a to b" in code and "+line 23" in code and "+line 24" in more_code
    assert 'alt="Two bars"' in picture and "first" in table
    assert "second" in result and "correct: 40 %\ntoo" in result, "all that the cell printed"
    assert "repair" not in result and "<pre>after the repair" in text and "and again" in text
    assert not re.search("folded|created|unseen", "".join(bodies))
    assert "3 &lt; 4" in answer and "How many?" in answer and "And which?" not in answer
    assert "that" in late and "How many?" not in late
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
