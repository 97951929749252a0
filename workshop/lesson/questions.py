"""Read a lesson's quiz:

[[question]]
text = "How many ...?"
choices = ["one", "two", "three"]
answer = 1                          # index from 0
why = "Because ..."
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from workshop.paths import QUIZZES

LETTERS = "abcd"
COUNT = 3
FIELDS = {"text": str, "choices": list, "answer": int, "why": str}


class BadQuiz(Exception):
    """A quiz file that cannot be used; the message names the file, the question and why."""


@dataclass(frozen=True)
class Question:
    """answer: the index of the right choice, from 0."""

    text: str
    choices: tuple[str, ...]
    answer: int
    why: str


def lessons(folder: Path = QUIZZES) -> list[str]:
    """The two digits of each lesson that has a quiz."""
    return sorted(path.stem.removeprefix("lesson_") for path in folder.glob("lesson_*.toml"))


def load(lesson: str, folder: Path = QUIZZES) -> list[Question]:
    """A lesson's questions. Raises ValueError for a lesson without a quiz, BadQuiz."""
    path = folder / f"lesson_{lesson}.toml"
    if not path.is_file():
        known = ", ".join(lessons(folder)) or "none"
        raise ValueError(f"Lesson {lesson!r} has no quiz. These have one: {known}.")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise BadQuiz(f"{path.name} is no valid TOML: {error}") from None
    tables = content.pop("question", [])
    if content or not isinstance(tables, list) or len(tables) != COUNT:
        raise BadQuiz(f"{path.name} must hold {COUNT} [[question]] tables and nothing else.")
    return [_question(f"{path.name}, question {at}", one) for at, one in enumerate(tables, 1)]


def _question(where: str, table: dict) -> Question:
    if set(table) != set(FIELDS):
        raise BadQuiz(f"{where}: it has {sorted(table)}; it must have {sorted(FIELDS)}.")
    for name, kind in FIELDS.items():
        if type(table[name]) is not kind or table[name] in ("", []):
            raise BadQuiz(f"{where}: {name} is {table[name]!r}; it must be a {kind.__name__}.")
    choices = table["choices"]
    if not (3 <= len(choices) <= 4 and all(isinstance(one, str) and one for one in choices)):
        raise BadQuiz(f"{where}: choices must be 3 or 4 texts.")
    if len(set(choices)) < len(choices):
        raise BadQuiz(f"{where}: two choices are the same.")
    if not 0 <= table["answer"] < len(choices):
        raise BadQuiz(f"{where}: answer is {table['answer']}; choices count from 0.")
    return Question(table["text"], tuple(choices), table["answer"], table["why"])
