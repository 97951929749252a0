"""The instructor's page: every quiz with its right answers. `workshop.course.sync` writes it."""

from __future__ import annotations

from pathlib import Path

from workshop.lesson.quiz import LETTERS, lessons, load
from workshop.paths import NOTEBOOKS, QUIZZES

PAGE = Path("instructor") / "quiz_answers.md"
TOP = """# Answers to the quizzes

Made from `notebooks/quiz/` by `python -m workshop.course.sync`: change the questions there.
"""


def answers_page(quizzes: Path = QUIZZES, notebooks: Path = NOTEBOOKS) -> str:
    """All lessons' questions with the right choice and why, as Markdown. Raises BadQuiz."""
    return "\n".join([TOP, *(_lesson(one, quizzes, notebooks) for one in lessons(quizzes))])


def pages(notebooks: Path = NOTEBOOKS) -> dict[Path, str]:
    """The page's place and the text it must have. Raises BadQuiz."""
    return {notebooks / PAGE: answers_page(notebooks=notebooks)}


def _lesson(number: str, quizzes: Path, notebooks: Path) -> str:
    questions = load(number, quizzes)
    key = "".join(LETTERS[one.answer] for one in questions)
    lines = [f"## {_title(number, notebooks)}", "", f"In short: `{key}`.", ""]
    for at, one in enumerate(questions, 1):
        lines += [f"{at}. {one.text}", ""]
        for index, choice in enumerate(one.choices):
            text = f"{LETTERS[index]}) {choice}"
            lines.append(f"   - **{text}** (right)" if index == one.answer else f"   - {text}")
        lines += ["", f"   {one.why}", ""]
    return "\n".join(lines)


def _title(number: str, notebooks: Path) -> str:
    """The lesson's title, read from its source."""
    for source in sorted(notebooks.glob(f"{number}_*.py")):
        for line in source.read_text().splitlines():
            if line.startswith(f"# # {number} · "):
                return line.removeprefix("# # ")
    return f"Lesson {number}"
