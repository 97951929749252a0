"""The quiz at a lesson's end: three questions from workshop/quiz/lesson_NN.toml.

`questions` reads and checks the files, `asking` shows them, `answers` writes the instructor's
page.
"""

from workshop.quizzing.asking import quiz

__all__ = ["quiz"]
