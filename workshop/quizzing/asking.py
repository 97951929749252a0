"""Show a quiz: radio buttons in a live notebook, text anywhere else."""

from __future__ import annotations

import html
import re
import textwrap

from workshop.display import answers_by_hand, show_widget
from workshop.quizzing.questions import LETTERS, Question, load

WIDTH = 96  # columns of printed text
CODE = re.compile(r"`([^`]+)`")
GOOD, BAD = "#1a7f37", "#b00020"


def quiz(lesson: str, answers: str | None = None) -> Marks | None:
    """Ask a lesson's three questions, or check answers to them.

    Args:
        lesson: "01".
        answers: a letter for each question, "bac"; None shows the questions.

    Returns:
        None, or with `answers` the marks: what is right, what is not, and why.

    Raises:
        ValueError: no such quiz; not one letter for each question, or a letter that a question
            does not have.
    """
    questions = load(lesson)
    if answers is not None:
        return Marks(questions, _letters(questions, answers))
    text = as_text(lesson, questions)
    if answers_by_hand():
        show_widget(as_widget(questions), text)
    else:
        print(text)
    return None


def as_text(lesson: str, questions: list[Question]) -> str:
    """The questions as text, and how to check answers."""
    lines = []
    for number, one in enumerate(questions, 1):
        lines += _wrapped(f"{number}. ", one.text)
        for letter, choice in zip(LETTERS, one.choices, strict=False):
            lines += _wrapped(f"   {letter}) ", choice)
        lines.append("")
    example = "abc"[: len(questions)]
    how = f'To check: workshop.quiz("{lesson}", answers="{example}"), with your letters in order.'
    return "\n".join([*lines, how])


def as_widget(questions: list[Question]):
    """Radio buttons for each question; a choice tells at once whether it is right, and why."""
    import ipywidgets

    return ipywidgets.VBox([_block(number, one) for number, one in enumerate(questions, 1)])


def _block(number: int, question: Question):
    import ipywidgets

    said = ipywidgets.HTML("")
    radio = ipywidgets.RadioButtons(
        options=[CODE.sub(r"\1", one) for one in question.choices],
        index=None,
        layout={"width": "max-content"},  # its default cuts long texts
    )

    def chosen(change: dict) -> None:
        right = change["new"] == question.answer
        colour, word = (GOOD, "Right.") if right else (BAD, "Not so.")
        said.value = f'<b style="color:{colour}">{word}</b> {_as_html(question.why)}'

    radio.observe(chosen, names="index")
    title = ipywidgets.HTML(f"<b>{number}.</b> {_as_html(question.text)}")
    return ipywidgets.VBox([title, radio, said], layout={"margin": "0 0 1em 0"})


def _as_html(text: str) -> str:
    return CODE.sub(r"<code>\1</code>", html.escape(text, quote=False))


def _wrapped(start: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
        break_on_hyphens=False,
    )


def _letters(questions: list[Question], answers: str) -> list[int]:
    """The index of each chosen answer. Raises ValueError."""
    given = [one for one in answers.lower() if one not in " ,"]
    if len(given) != len(questions):
        raise ValueError(
            f"{answers!r} has {len(given)} letters for {len(questions)} questions: give one each."
        )
    for number, (letter, one) in enumerate(zip(given, questions, strict=True), 1):
        letters = LETTERS[: len(one.choices)]
        if letter not in letters:
            raise ValueError(f"Question {number} has no choice {letter!r}: it has {letters}.")
    return [LETTERS.index(letter) for letter in given]


class Marks:
    """Which answers are right, and why. Attributes: chosen (indices, from 0), right (how many)."""

    def __init__(self, questions: list[Question], chosen: list[int]) -> None:
        self.chosen, self._questions = chosen, questions
        self.right = sum(one == of.answer for one, of in zip(chosen, questions, strict=True))

    @property
    def table(self):
        """A pandas table: question, your answer, result, why."""
        import pandas as pd

        names = ["question", "your answer", "result", "why"]
        return pd.DataFrame(self._rows(), columns=names)

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (one.text, one.choices[at], "right" if at == one.answer else "not so", one.why)
            for at, one in zip(self.chosen, self._questions, strict=True)
        ]

    def __repr__(self) -> str:
        lines = []
        for number, (_, answer, result, why) in enumerate(self._rows(), 1):
            lines += [*_wrapped(f"{number}. {result}: ", answer), *_wrapped("   ", why)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        # Not pandas' own view of a table: it cuts texts after 50 letters.
        page = self.table.map(_as_html).to_html(index=False, escape=False, border=0, justify="left")
        return page.replace("<td>", '<td style="text-align: left">')
