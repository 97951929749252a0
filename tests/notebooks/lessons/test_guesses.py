"""Each guess that an executed lesson asks for is answered: counted in what the cells displayed."""

import html
import re
from itertools import pairwise

import nbformat
import pytest
from course_text import lessons
from lesson_runs import lesson_run

from workshop.lesson.guess import Guess

__all__ = ["lesson_run"]
ASKED = re.compile(r"^\s*guess\[\"(\w+)\"\] =", re.MULTILINE)
INSTRUCTIONS = "What is your guess? Answer in a cell of your own."
ROW = re.compile(r"<tr>\s*<th>([^<]*)</th>\s*<td>", re.DOTALL)


def texts(cell: nbformat.NotebookNode, kind: str) -> list[str]:
    """What a cell's outputs show: kind "text/plain" (with what it printed) or "text/html"."""
    shown = []
    for output in cell.get("outputs", []):
        text = output.get("data", {}).get(kind, "")
        shown.append(output.get("text", "") or text if kind == "text/plain" else text)
    return ["".join(text) for text in shown if text]


def questions(cell: nbformat.NotebookNode) -> list[str]:
    """The questions that a cell showed, each a text."""
    asking = []
    for text in texts(cell, "text/plain"):
        if INSTRUCTIONS in text:
            lines = text.split(INSTRUCTIONS, 1)[1].splitlines()
            pairs = pairwise(lines)
            asking += [
                question for question, after in pairs if question.strip() and ASKED.match(after)
            ]
    return [question for question in asking if not ASKED.match(question)]


def answers(cell: nbformat.NotebookNode) -> list[str]:
    """The questions whose guess a cell showed beside the answer."""
    tables = [text for text in texts(cell, "text/html") if ">question<" in text]
    rows = [row for table in tables for row in ROW.findall(table)]
    return [html.unescape(row) for row in rows]


def unanswered(notebook: nbformat.NotebookNode) -> list[str]:
    """Questions that no later cell answered, and answers that were asked for nowhere."""
    waiting: list[str] = []
    wrong = []
    for cell in notebook.cells:
        for question in answers(cell):
            if question in waiting:
                waiting.remove(question)
            else:
                wrong.append(f"answered and not asked: {question}")
        waiting += questions(cell)
    return waiting + wrong


@pytest.mark.reads_lessons
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("number", lessons())
def test_as_many_answers_are_shown_as_guesses_are_asked_for(lesson_run, number):
    notebook = lesson_run(number).notebook
    expected = [question for cell in notebook.cells for question in questions(cell)]
    assert expected, "the lesson asks for no guess"
    assert unanswered(notebook) == []
    # The lesson's own record must say the same, or this test reads outputs in another form.
    assert sorted(set(expected)) == sorted(lesson_run(number).results["guesses"])


QUESTIONS = {"a": "How many & how fast?", "b": ("Which?", ["x", "y"])}


def executed(*shown: dict) -> nbformat.NotebookNode:
    """A notebook whose cells showed the two questions, and after that these answers, each a cell.

    An empty one shows the questions once more.
    """
    guess, cells = Guess(QUESTIONS), []
    for answer in ({}, *shown):
        if answer:
            data = {"text/html": guess.table(**answer)._repr_html_(), "text/plain": "a table"}
            output = nbformat.v4.new_output("display_data", data=data)
        else:
            output = nbformat.v4.new_output("stream", text=guess.instructions())
        cells.append(nbformat.v4.new_code_cell("", outputs=[output]))
    return nbformat.v4.new_notebook(cells=cells)


@pytest.mark.parametrize(
    ("shown", "left"),
    [
        ([{"a": 1, "b": "x"}], []),
        ([{"a": 1}, {"b": "x"}], []),
        ([{"a": 1}], ["Which?"]),
        ([], ["How many & how fast?", "Which?"]),
        ([{}, {"a": 1, "b": "x"}], ["How many & how fast?", "Which?"]),
        (
            [{"a": 1, "b": "x"}, {"a": 1}],
            ["answered and not asked: How many & how fast?"],
        ),
    ],
)
def test_a_guess_without_an_answer_is_found(shown, left):
    assert unanswered(executed(*shown)) == left
