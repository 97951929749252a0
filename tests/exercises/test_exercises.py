"""Every lesson's exercises: the solutions pass, untouched stubs and wrong answers do not."""

import importlib
import re
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from workshop.course import exercises as generate
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


def nbval(path):
    """Run every cell of a notebook with nbval; (exit status, what it says)."""
    command = [sys.executable, "-m", "pytest", "--nbval-lax", "--nbval-current-env", "-p"]
    command += ["no:cacheprovider", "--color=no", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    return done.returncode, done.stdout + done.stderr


@lesson
def test_the_solutions_are_right(source):
    code, said = nbval(source.with_suffix(".ipynb"))
    assert code == 0, said


def test_a_solution_that_is_not_right_is_noticed(tmp_path):
    source = next(one for one in SOURCES if one.stem.startswith("02"))
    notebook = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    notebook.cells = [one for one in notebook.cells if "02.1" not in one.source]
    for cell in tagged(notebook, "answer"):
        cell.source = cell.source.replace("alpha + ", "")
    notebook.cells = [
        one for one in notebook.cells if one.cell_type == "code" and "all_gather" not in one.source
    ]
    nbformat.write(notebook, tmp_path / "wrong.ipynb")
    code, said = nbval(tmp_path / "wrong.ipynb")
    assert code == 1 and "02.3" in said, said


@lesson
def test_an_untouched_stub_is_not_right(source):
    notebook = generate.exercise_notebook(source)
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
