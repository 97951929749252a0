"""Every lesson's exercises: the solutions pass, untouched stubs and wrong answers do not.

The wrong answers, and other right ones, are in answers_NN.toml, as changes of the solutions.
answer: lines in the place of the solution's. changes: pairs of texts; the first is there once, the
second comes in its place. says: a regular expression of the message; without it an answer is right.
"""

import contextlib
import functools
import inspect
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import jupytext
import nbformat
import pytest
import torch.distributed as dist
from script_harness import replaced

from tools import exercises as generate
from workshop.failures import five_jobs
from workshop.launch.horovod import horovod_status
from workshop.launch.ranks import RankFailed, start_ranks
from workshop.lesson import check as checking
from workshop.lesson.check import Wrong, check, numbers

SOURCES = generate.sources()
assert SOURCES
needs_horovod = pytest.mark.skipif(not horovod_status().available, reason=str(horovod_status()))
lesson = pytest.mark.parametrize(
    "source",
    [
        pytest.param(path, id=path.stem, marks=needs_horovod if path.stem[:2] == "04" else ())
        for path in SOURCES
    ],
)


@pytest.fixture(scope="module")
def running():
    """Ranks by world_size, for all checks: to start them takes longer than what they then do."""
    by_size = {}
    yield by_size
    for ranks in by_size.values():
        ranks.stop()


@pytest.fixture(autouse=True)
def same_ranks_again(running, monkeypatch):
    @contextlib.contextmanager
    def started(world_size):
        if world_size not in running:
            running[world_size] = start_ranks(world_size)
        yield running[world_size]

    put_in_place_of_ranks(monkeypatch, started)


@pytest.fixture(scope="module")
def jobs_of_lesson_10():
    """A function that starts the five jobs of exercise 10.5, shorter ones, and does it once."""
    really = five_jobs.start  # the next fixture replaces it

    @functools.cache
    def start():
        try:
            return really("your name", seconds=1.0)
        except five_jobs.TooBusy as error:
            return error

    def started(*_):
        if isinstance(jobs := start(), five_jobs.TooBusy):
            pytest.skip(str(jobs))
        return jobs

    return started


@pytest.fixture(autouse=True)
def same_jobs_again(jobs_of_lesson_10, monkeypatch):
    monkeypatch.setattr(five_jobs, "start", jobs_of_lesson_10)
    monkeypatch.setattr(five_jobs, "newest", jobs_of_lesson_10)


def put_in_place_of_ranks(monkeypatch, start):
    for lesson in ("01", "02", "03", "07", "11", "12"):
        numbers(lesson)  # loads the checks
        monkeypatch.setattr(sys.modules[f"workshop_checks_lesson_{lesson}"], "start_ranks", start)


class RanksOfAStub:
    """One rank, in this process: ranks that fail are ended, and a stub fails on all of them."""

    def run(self, name, *given, timeout):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        try:
            for stub in filter(callable, given):
                with pytest.raises(NotImplementedError) as raised:
                    stub(*[None] * len(inspect.signature(stub).parameters))
                raise RankFailed(f"rank 0 stopped with NotImplementedError: {raised.value}")
        finally:
            dist.destroy_process_group()


@functools.cache
def other_answers(source):
    """Of a solutions file: {number: answers}."""
    path = Path(__file__).with_name(f"answers_{source.stem[:2]}.toml")
    return tomllib.loads(path.read_text())


def wrong_answers(source, number):
    return [answer for answer in other_answers(source)[number] if "says" in answer]


@functools.cache
def solved(source):
    """(the first code cell, which imports; the exercises by number) of a solutions file."""
    notebook = jupytext.read(source, fmt="py:percent")
    first = next(cell.source for cell in notebook.cells if cell.cell_type == "code")
    return first, {exercise.number: exercise for exercise in generate.exercises(source)}


def changed(source, number, other):
    """The solution as another answer has it, as a function."""
    imports, exercises = solved(source)
    text = exercises[number].answer.source
    if "answer" in other:
        lines = other["answer"]
        text = generate.SOLUTION.sub(lambda match: textwrap.indent(lines, match[1]), text)
    text = replaced(text, other.get("changes", []))
    names = {"__name__": "__main__"}
    exec(imports, names)
    for exercise in exercises.values():  # an answer may call that of an exercise before
        exec(compile(exercise.answer.source, "a solution", "exec"), names)
    exec(compile(text, "an answer", "exec"), names)
    return names[re.search(r"check\([^,]*, (\w+)\)", exercises[number].check.source)[1]]


def tagged(notebook, tag):
    return [cell for cell in notebook.cells if tag in cell.metadata.get("tags", [])]


@lesson
def test_a_few_exercises_each_with_a_check_and_three_wrong_answers(source):
    expected = [exercise.number for exercise in generate.exercises(source)]
    assert 2 <= len(expected) <= 6
    assert numbers(source.stem[:2]) == expected, "checks in notebooks/checks/lesson_NN.py"
    assert sorted(other_answers(source)) == expected
    counts = {number: len(wrong_answers(source, number)) for number in expected}
    assert min(counts.values()) >= 3, f"plausible wrong answers, at least three: {counts}"


def errors(notebook, folder, monkeypatch):
    """(cell, what it raised) of each cell that raised something, run here, one after the other."""
    monkeypatch.chdir(folder)
    # Of __main__, as in a notebook: ranks get its functions by value.
    raised, names = [], {"__name__": "__main__"}
    for cell in (part for part in notebook.cells if part.cell_type == "code"):
        try:
            exec(compile(cell.source, "a cell", "exec"), names)
        except Exception as error:
            raised.append((cell, error))
    return raised


@lesson
def test_the_solutions_are_right(source, monkeypatch, capsys):
    notebook = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    assert errors(notebook, source.parent, monkeypatch) == []
    printed = capsys.readouterr().out
    assert all(f"{exercise.number}: right." in printed for exercise in generate.exercises(source))


@pytest.mark.soak  # the test above runs the same cells in this process
def test_the_solutions_can_be_run_by_nbval_in_kernels_of_their_own():
    """As CONTRIBUTING says."""
    command = [sys.executable, "-m", "pytest", "--nbval-lax", "--nbval-current-env", "-p"]
    command += ["no:cacheprovider", "--color=no", str(SOURCES[-1].with_suffix(".ipynb"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr


@lesson
def test_an_untouched_stub_is_not_right(source, monkeypatch):
    put_in_place_of_ranks(monkeypatch, lambda _: contextlib.nullcontext(RanksOfAStub()))
    notebook = generate.exercise_notebook(source)
    raised = errors(notebook, source.parent, monkeypatch)
    assert [cell for cell, _ in raised] == tagged(notebook, "check")
    for exercise, (_, error) in zip(generate.exercises(source), raised, strict=True):
        assert isinstance(error, Wrong)
        assert str(error).startswith(f"{exercise.number} is not answered yet"), error


@lesson
def test_another_right_answer_passes(source):
    for number, answers in other_answers(source).items():
        for answer in answers:
            if "says" not in answer:
                check(number, changed(source, number, answer))


@lesson
@pytest.mark.parametrize("most", [1, pytest.param(None, marks=pytest.mark.soak)])
def test_a_learner_is_told_what_is_wrong(source, most):
    """Where a check starts ranks, by the first wrong answer; else by all."""
    missed = []
    for number in numbers(source.stem[:2]):
        starts_ranks = checking._CHECKS[number][1] > checking.SECONDS
        answers = wrong_answers(source, number)[: most if starts_ranks else None]
        for at, answer in enumerate(answers):
            message = answer["says"]
            try:
                check(number, changed(source, number, answer))
            except Wrong as wrong:
                if not re.search(message, str(wrong), re.DOTALL):
                    missed.append(f"{number}, answer {at}: {message!r} is not in {str(wrong)!r}")
            else:
                missed.append(f"{number}, answer {at} passes; expected: {message!r}")
    assert not missed, "\n".join(missed)
