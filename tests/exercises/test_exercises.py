"""Every lesson's exercises: the solutions pass, untouched stubs and wrong answers do not."""

import importlib
import re

import nbformat
import pytest
from nbclient import NotebookClient

from workshop.course import exercises as generate
from workshop.course.execute import execute
from workshop.course.sync import as_notebook
from workshop.lesson.check import Wrong, check, numbers

SOURCES = generate.sources()
lesson = pytest.mark.parametrize("source", SOURCES, ids=[one.stem for one in SOURCES])


def wrong_answers(source):
    """{number: [(answer, regular expression of the message)]} of tests/exercises/wrong_NN.py."""
    return importlib.import_module(f"wrong_{source.stem[:2]}").WRONG


def tagged(notebook, tag):
    return [cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])]


def test_there_are_exercises():
    assert SOURCES


@lesson
def test_two_or_three_exercises_each_with_a_check_and_wrong_answers(source):
    found = [one.number for one in generate.exercises(source)]
    assert 2 <= len(found) <= 3
    assert numbers(source.stem[:2]) == found, "checks in notebooks/checks/lesson_NN.py"
    wrong = wrong_answers(source)
    assert sorted(wrong) == found
    assert all(wrong.values()), "each exercise needs a plausible wrong answer"


@lesson
def test_the_solutions_are_right(source, tmp_path):
    pair, copy = source.with_suffix(".ipynb"), tmp_path / f"{source.stem}.ipynb"
    assert pair.read_text() == as_notebook(source), "run `python -m workshop.course.sync`"
    execute(pair, copy, {}, cell_seconds=120)
    checks = tagged(nbformat.read(copy, as_version=4), "check")
    said = ["".join(one.get("text", "") for one in cell.outputs) for cell in checks]
    expected = [one.number for one in generate.exercises(source)]
    assert [text.split(":")[0] for text in said] == expected
    assert all(": right. " in text for text in said), said


@lesson
def test_an_untouched_stub_is_not_right(source):
    notebook = nbformat.reads(generate.exercise_notebook(source), as_version=4)
    where = {"metadata": {"path": str(source.parent)}}
    NotebookClient(notebook, timeout=120, allow_errors=True, resources=where).execute()
    for one, cell in zip(generate.exercises(source), tagged(notebook, "check"), strict=True):
        (error,) = [output for output in cell.outputs if output.output_type == "error"]
        assert error.ename == "Wrong", error
        assert error.evalue.startswith(f"{one.number} is not answered yet"), error.evalue


@lesson
def test_a_learner_is_told_what_is_wrong(source):
    missed = []
    for number, answers in wrong_answers(source).items():
        for at, (answer, message) in enumerate(answers):
            try:
                check(number, answer)
            except Wrong as wrong:
                if not re.search(message, str(wrong), re.DOTALL):
                    missed.append(f"{number}, answer {at}: {message!r} is not in {str(wrong)!r}")
            else:
                missed.append(f"{number}, answer {at} passes; expected: {message!r}")
    assert not missed, "\n".join(missed)
