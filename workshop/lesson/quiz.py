"""`workshop.quiz`: a lesson's questions; a click on a choice says whether it is right.

The questions are in notebooks/quiz/lesson_NN.toml:

    [[question]]
    text = "How many ...?"
    choices = ["one", "two", "three"]
    answer = 1                          # index from 0
    why = ["No, because ...", "Because ...", "No, because ..."]    # to each choice, in their order

A text in place of the list answers all choices.
"""

from __future__ import annotations

import html
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from workshop.output import in_notebook
from workshop.paths import QUIZZES

LETTERS = "abcd"
CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Question:
    """answer: the index of the right choice, from 0. why: what a click on each choice says."""

    text: str
    choices: list[str]
    answer: int
    why: list[str]


def quiz(lesson: str) -> None:
    """Show a lesson's questions. lesson: "01". Raises ValueError if there is no such quiz."""
    questions = load(lesson)
    if not in_notebook():
        print(as_text(questions))
        return
    from IPython.display import display

    # Plain HTML: it answers in JupyterLab, on a page and in an editor, and needs no kernel.
    display({"text/html": as_html(questions), "text/plain": as_text(questions)}, raw=True)


def lessons(folder: Path = QUIZZES) -> list[str]:
    """The two digits of each lesson that has a quiz."""
    return sorted(path.stem.removeprefix("lesson_") for path in folder.glob("lesson_*.toml"))


def load(lesson: str, folder: Path = QUIZZES) -> list[Question]:
    """A lesson's questions. Raises ValueError for a lesson without a quiz."""
    path = folder / f"lesson_{lesson}.toml"
    if not path.is_file():
        known = ", ".join(lessons(folder)) or "none"
        raise ValueError(f"Lesson {lesson!r} has no quiz. These have one: {known}.")
    return read(path)


def read(path: Path) -> list[Question]:
    """The questions in a file. Raises ValueError where choices and answers don't match."""
    return [_question(**table) for table in tomllib.loads(path.read_text("utf-8"))["question"]]


def _question(text: str, choices: list[str], answer: int, why: str | list[str]) -> Question:
    answers = [why] * len(choices) if isinstance(why, str) else why
    if len(answers) != len(choices):
        raise ValueError(f"{len(choices)} choices and {len(answers)} answers: {text}")
    return Question(text, choices, answer, answers)


def as_html(questions: list[Question]) -> str:
    """The questions; each choice unfolds to its verdict."""
    parts = []
    for question in questions:
        parts.append(f"<li><p>{_marked_up(question.text)}</p>")
        for index, (choice, why) in enumerate(zip(question.choices, question.why, strict=True)):
            verdict = "Right." if index == question.answer else "No."
            parts.append(
                f"<details><summary>{_marked_up(choice)}</summary>"
                f"<p><b>{verdict}</b> {_marked_up(why)}</p></details>"
            )
        parts.append("</li>")
    return "<p>Click on your answer.</p><ol>" + "\n".join(parts) + "</ol>"


def as_text(questions: list[Question]) -> str:
    """The questions, where nothing can be clicked."""
    lines = []
    for number, question in enumerate(questions, 1):
        lines.append(f"{number}. {question.text}")
        choices = zip(LETTERS, question.choices, strict=False)
        lines += [f"   {letter}) {choice}" for letter, choice in choices]
    return "\n".join([*lines, "The answers: docs/teaching/quiz_answers.md"])


def _marked_up(text: str) -> str:
    return CODE.sub(r"<code>\1</code>", html.escape(text, quote=False))
