"""`workshop.guess`: a guess before the measurement, and both side by side after it.

guess = workshop.guess(ranks="How many ranks will there be?")
guess["ranks"] = 4            # in a cell of your own, or in the field that JupyterLab shows
...
guess.compare(ranks=measured)
"""

from __future__ import annotations

import math
import numbers

import pandas as pd

from workshop.lesson.results import save_results
from workshop.output import in_notebook

NO_GUESS = "-"
ASKS = "What is your guess? Answer in a cell of your own."
# Where an answer is from -> the head of its column.
SOURCES = {
    "measured": "measured",
    "recorded": "recorded elsewhere",
    "computed": "computed",
    "listed": "list price",
}

_questions: list[tuple[str, list[str]]] = []  # of this process, in order: a question, its choices
_answers: dict[str, dict[str, str]] = {}  # each compared question's row of the table


def guess(**questions) -> Guess:
    """Ask for a guess at each question. The notebook continues without answers, too.

    Args:
        questions: name="Question?" for a number, or name=("Question?", ["one", "other"]) for a
            choice of texts.

    Returns:
        The guesses. JupyterLab shows a field for each; anywhere else they are set with
        guess["name"] = value. Their `compare` must follow: an executed lesson's results say, under
        "guesses", which questions were compared.
    """
    guess = Guess(questions)
    new = [(text, guess._choices[name]) for name, text in guess.texts.items()]
    _questions.extend(question for question in new if question not in _questions)
    _save()
    if _has_keyboard():
        from IPython.display import display

        bundle = guess.fields()._repr_mimebundle_() | {"text/plain": guess.instructions()}
        display(bundle, raw=True)
    else:
        print(guess.instructions())
    return guess


class Guess:
    """The answers so far, by name: `guess["ranks"] = 4`. texts: name -> question."""

    def __init__(self, questions: dict) -> None:
        if not questions:
            raise TypeError('guess() needs a question: guess(ranks="How many ranks?").')
        self.texts: dict[str, str] = {}
        self._choices: dict[str, list[str]] = {}
        self._answers: dict[str, object] = {}
        for name, question in questions.items():
            text, choices = (question, []) if isinstance(question, str) else question
            self.texts[name], self._choices[name] = text, list(choices)

    def __getitem__(self, name: str):
        """The answer, or None where there is none yet."""
        self._require(name)
        return self._answers.get(name)

    def __setitem__(self, name: str, value) -> None:
        """Raises ValueError for a name without a question, and for a value of another kind."""
        self._require(name)
        if value is not None:
            self._check(name, value)
        self._answers[name] = value

    def compare(self, source: str = "measured", /, **answers) -> None:
        """Show each question with the guess, the answer and how far off the guess was.

        It displays itself, wherever in a cell the call is. Without a guess, only the answer.

        Args:
            source: where the answers come from, the head of their column: "measured" (here, in
                this run), "recorded" (elsewhere), "computed" or "listed" (in a price list).
            answers: by the questions' names; the others are left out.

        Raises ValueError for a name that no question has, and for another source.
        """
        from IPython.display import display

        table = self.table(source, **answers)
        guessed = (table["your guess"] != NO_GUESS).any()
        display(table if guessed else table.drop(columns=["your guess", "off by"]))
        _answers.update(table.to_dict("index"))
        _save()

    def table(self, source: str = "measured", /, **answers) -> pd.DataFrame:
        """What `compare` shows."""
        if source not in SOURCES:
            raise ValueError(f"source is {source!r}; expected one of {', '.join(SOURCES)}.")
        rows = []
        for name, value in answers.items():
            self._require(name)
            value = value.item() if hasattr(value, "item") else value  # numpy's number
            if self._choices[name]:
                self._check(name, value)
            answer = self._answers.get(name)
            row = (self.texts[name], _shown(answer), _shown(value), _off_by(answer, value))
            rows.append(row)
        table = pd.DataFrame(rows, columns=["question", "your guess", SOURCES[source], "off by"])
        # The index's name would take a line of the table's head to itself.
        return table.set_index("question").rename_axis(index=None, columns="question")

    def instructions(self) -> str:
        """The questions, and how to answer them."""
        lines = [ASKS]
        for name, text in self.texts.items():
            values = map(repr, self._choices[name]) if self._choices[name] else [""]
            lines += ["", text, *(f'    guess["{name}"] = {value}' for value in values)]
        return "\n".join(lines)

    def fields(self):
        """A widget with a field for each question."""
        import ipywidgets

        return ipywidgets.VBox([self._field(name) for name in self.texts])

    def _field(self, name: str):
        import ipywidgets

        error = ipywidgets.Label("")
        if self._choices[name]:
            field = ipywidgets.RadioButtons(
                options=self._choices[name], value=None, layout={"width": "max-content"}
            )
        else:
            field = ipywidgets.Text(placeholder="a number", continuous_update=False)

        def changed(change: dict) -> None:
            try:
                self[name] = change["new"] if self._choices[name] else to_number(change["new"])
                error.value = ""
            except ValueError as problem:
                self[name] = None
                error.value = str(problem)

        field.observe(changed, names="value")
        return ipywidgets.VBox(
            [ipywidgets.Label(self.texts[name]), ipywidgets.HBox([field, error])]
        )

    def _require(self, name: str) -> None:
        if name not in self.texts:
            known = ", ".join(self.texts)
            raise ValueError(f"There is no question {name!r}. The questions are: {known}.")

    def _check(self, name: str, value) -> None:
        choices = self._choices[name]
        if choices and value not in choices:
            allowed = " or ".join(map(repr, choices))
            raise ValueError(f"{name}: {value!r} is not a choice. Choose {allowed}.")
        if not choices and not _is_number(value):
            raise ValueError(f"{name}: {value!r} is not a number.")


def to_number(text: str) -> float | None:
    """Parse a typed number; None if empty. "1,5" is refused: it might mean 15 or 1.5."""
    try:
        value = float(text) if text.strip() else None
    except ValueError:
        raise ValueError(f"{text!r} is not a number: write it like 4 or 0.25") from None
    if value is not None and not math.isfinite(value):
        raise ValueError(f"{text!r} is not a finite number")
    return value


def _save() -> None:
    compared = {question: question in _answers for question, _ in _questions}
    # A notebook's file sorts the keys of dictionaries: only `asked` keeps the questions' order.
    save_results(asked=_questions, guesses=compared, answers=_answers)


def _has_keyboard() -> bool:
    """Whether a user can fill in a field: papermill and nbconvert have none."""
    if not in_notebook():
        return False
    from IPython import get_ipython

    request = get_ipython().kernel.get_parent("shell")
    return bool(request.get("content", {}).get("allow_stdin"))


def _is_number(value) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _shown(value) -> str:
    if value is None:
        return NO_GUESS
    if not _is_number(value):
        return str(value)
    if isinstance(value, numbers.Integral):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _off_by(answer, measured) -> str:
    """The distance in words: per cent of the measured value, or a factor from 2 on."""
    if answer is None:
        return NO_GUESS
    if not (_is_number(answer) and _is_number(measured)):
        return "right" if answer == measured else "another answer"
    if math.isclose(answer, measured, rel_tol=0.005):
        return "nothing"
    direction = "too high" if answer > measured else "too low"
    if measured == 0 or answer * measured <= 0:
        return f"{_shown(abs(answer - measured))} {direction}"
    factor = max(answer / measured, measured / answer)
    if factor >= 2:
        return f"{_shown(factor)} times {direction}"
    return f"{100 * abs(answer - measured) / abs(measured):.0f} % {direction}"
