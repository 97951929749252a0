"""`workshop.predict`: a guess before the measurement, and the two side by side after it.

guess = workshop.predict(ranks="How many ranks will there be?")
guess["ranks"] = 4            # or in the field that a live notebook shows
...
guess.compare(ranks=measured)
"""

from __future__ import annotations

import math
import numbers

import pandas as pd

from workshop.display import answers_by_hand, show_widget

NONE = "-"  # no guess


def predict(**questions) -> Guess:
    """Ask for a guess at each question; without answers the notebook goes on all the same.

    Args:
        questions: name="Question?" for a number, or name=("Question?", ["one", "other"]) for a
            choice of texts.

    Returns:
        The guesses: a live notebook shows a field for each; anywhere else they are set with
        guess["name"] = value.

    Raises:
        TypeError: a question is neither of the two forms.
    """
    guess = Guess({name: _Question.read(name, one) for name, one in questions.items()})
    if answers_by_hand():
        show_widget(guess.fields(), guess.how())
    else:
        print(guess.how())
    return guess


class _Question:
    """A text, and the choices if the answer is one of several texts."""

    def __init__(self, text: str, choices: tuple[str, ...] = ()) -> None:
        self.text, self.choices = text, choices

    @classmethod
    def read(cls, name: str, given) -> _Question:
        if isinstance(given, str):
            return cls(given)
        good = isinstance(given, tuple | list) and len(given) == 2 and isinstance(given[0], str)
        if good and isinstance(given[1], tuple | list) and len(given[1]) >= 2:
            return cls(given[0], tuple(map(str, given[1])))
        raise TypeError(
            f'predict({name}=...): give a text, or a text and its choices: ("text?", ["a", "b"]).'
        )

    def take(self, name: str, value):
        """A valid answer. Raises ValueError."""
        if self.choices:
            if value not in self.choices:
                raise ValueError(f"{name}: {value!r} is no choice. Choose {_listed(self.choices)}.")
        elif isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise ValueError(f"{name}: {value!r} is no number.")
        return value


class Guess:
    """The answers so far, by name: `guess["ranks"] = 4`."""

    def __init__(self, questions: dict[str, _Question]) -> None:
        if not questions:
            raise TypeError('predict() needs a question: predict(ranks="How many ranks?").')
        self._questions = questions
        self._answers: dict[str, object] = {}

    def __getitem__(self, name: str):
        """The answer, or None where there is none yet."""
        self._question(name)
        return self._answers.get(name)

    def __setitem__(self, name: str, value) -> None:
        question = self._question(name)
        if value is None:
            self._answers.pop(name, None)
        else:
            self._answers[name] = question.take(name, value)

    def compare(self, **measured) -> pd.DataFrame:
        """A table: question, your guess, measured and, with numbers, how far off the guess was.

        measured: by the questions' names; those not given are left out of the table.
        Raises ValueError for a name that no question has.
        """
        rows = []
        for name, value in measured.items():
            question, value = self._question(name), _plain(value)
            if question.choices:
                question.take(name, value)
            guess = self._answers.get(name)
            rows.append((question.text, _shown(guess), _shown(value), _off_by(guess, value)))
        table = pd.DataFrame(rows, columns=["question", "your guess", "measured", "off by"])
        # The index's name would take a line of the table's head to itself.
        return table.set_index("question").rename_axis(index=None, columns="question")

    def how(self) -> str:
        """The questions, and how to answer them."""
        lines = ["Your guess, before you go on? Answer in a cell of your own."]
        for name, one in self._questions.items():
            answer = f'    guess["{name}"] = '
            lines += [
                "",
                one.text,
                *([answer + repr(choice) for choice in one.choices] or [answer]),
            ]
        return "\n".join(lines)

    def fields(self):
        """A widget with a field for each question."""
        import ipywidgets

        return ipywidgets.VBox([self._field(name) for name in self._questions])

    def __repr__(self) -> str:
        return f"Guess({ {name: self._answers.get(name) for name in self._questions} })"

    def _question(self, name: str) -> _Question:
        if name not in self._questions:
            known = ", ".join(self._questions)
            raise ValueError(f"There is no question {name!r}. The questions are: {known}.")
        return self._questions[name]

    def _field(self, name: str):
        import ipywidgets

        question, wide = self._questions[name], {"width": "max-content"}
        text = ipywidgets.Label(question.text)
        said = ipywidgets.Label("")
        if question.choices:
            field = ipywidgets.RadioButtons(options=question.choices, value=None, layout=wide)
        else:
            narrow = {"width": "10em"}
            field = ipywidgets.Text(placeholder="a number", continuous_update=False, layout=narrow)

        def changed(change: dict) -> None:
            try:
                self[name] = change["new"] if question.choices else _number(change["new"])
                said.value = ""
            except ValueError as error:
                self[name] = None
                said.value = str(error)

        field.observe(changed, names="value")
        return ipywidgets.VBox([text, ipywidgets.HBox([field, said])])


def _number(text: str) -> float | int | None:
    """What was typed; None for nothing. "1,5" is refused: it might mean 15 or 1.5."""
    text = text.strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number: write it like 4 or 0.25") from None
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is no finite number")
    return int(value) if value.is_integer() else value


def _listed(choices: tuple[str, ...]) -> str:
    return " or ".join(map(repr, choices))


def _plain(value):
    """numpy's numbers as Python's own."""
    return value.item() if hasattr(value, "item") else value


def _is_number(value) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _shown(value) -> str:
    if value is None:
        return NONE
    if not _is_number(value):
        return str(value)
    if isinstance(value, numbers.Integral):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _off_by(guess, measured) -> str:
    """The distance in words: a part of the measured value, or a factor where that says more."""
    if guess is None:
        return NONE
    if not (_is_number(guess) and _is_number(measured)):
        return "right" if guess == measured else "another answer"
    if math.isclose(guess, measured, rel_tol=0.005):
        return "nothing"
    way = "too high" if guess > measured else "too low"
    if measured == 0 or guess * measured <= 0:
        return f"{_shown(abs(guess - measured))} {way}"
    factor = max(guess / measured, measured / guess)
    if factor >= 2:
        return f"{_shown(factor)} times {way}"
    return f"{100 * abs(guess - measured) / abs(measured):.0f} % {way}"
