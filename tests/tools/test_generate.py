"""Exercises from solutions: what is left out, what is kept, and which sources are refused."""

import json

import pytest

from tools import exercises as generate
from tools import sync
from tools.exercises import BadSource, exercises, without_solution

PART = '''
# %% [markdown]
# ## Exercise 01.{at} · A title (5 minutes, easy)
#
# Do it.
# <details><summary>Hint</summary>
#
# Think.
# </details>

# %% tags=["answer"]
def f(x):
    """Double it."""
    # BEGIN SOLUTION
    if x:
        return 2 * x
    # END SOLUTION


# %% tags=["check"]
workshop.check("01.{at}", f)
'''
TITLE = "# %% [markdown]\n# # 01 · Exercises\n\n# %%\nimport workshop\n"
GOOD = TITLE + PART.format(at=1) + PART.format(at=2)


@pytest.fixture
def write_source(tmp_path):
    def write(text, name="01_x"):
        path = tmp_path / "solutions" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    return write


def test_the_solution_is_left_out_and_all_else_is_kept(write_source):
    source = write_source(GOOD)
    made = [cell.source for cell in generate.exercise_notebook(source).cells]
    assert made[0].startswith("# 01 · Exercises\n\nFrom the lesson [01_x](../01_x.ipynb).")
    assert made[1] == "import workshop"
    assert made[3] == (
        'def f(x):\n    """Double it."""\n'
        '    raise NotImplementedError("Exercise 01.1: write your code here.")'
    )
    assert made[4] == 'workshop.check("01.1", f)'
    assert "Exercise 01.2: write" in made[6]
    assert "2 * x" not in "".join(made)


def test_the_same_source_gives_the_same_bytes_and_other_ids_for_other_cells(write_source):
    source = write_source(GOOD)
    text = sync.as_text(generate.exercise_notebook(source))
    assert text == sync.as_text(generate.exercise_notebook(source))
    ids = [cell["id"] for cell in json.loads(text)["cells"]]
    assert len(set(ids)) == len(ids) == 8
    assert all(not cell.get("outputs") for cell in json.loads(text)["cells"])


def test_the_place_of_the_raise_is_that_of_the_marker():
    code = "class A:\n    def f(self):\n        x = 1\n        # BEGIN SOLUTION\n        return x\n"
    code += "        # END SOLUTION\n\n    def g(self):\n        # BEGIN SOLUTION\n        pass\n"
    code += "        # END SOLUTION\n        return 3"
    line = 'raise NotImplementedError("Exercise 01.1: write your code here.")'
    assert without_solution(code, "01.1") == (
        f"class A:\n    def f(self):\n        x = 1\n        {line}\n\n"
        f"    def g(self):\n        {line}\n        return 3"
    )


@pytest.mark.parametrize("begins", ["    # BEGIN SOLUTION\n", ""])
def test_bad_markers(begins):
    with pytest.raises(BadSource, match=r"01\.1: .*put its solution between"):
        without_solution(f"def f():\n{begins}    return 1", "01.1")


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("(5 minutes, easy)", "(5 minutes, trivial)", "exercise 1 must be a text that begins"),
        ("<summary>Hint</summary>", "", "01.1: add <details>"),
        ("Exercise 01.1", "Exercise 01.3", "'## Exercise 01.1 · Title"),
        ('check("01.1"', 'check("01.2"', "must call workshop.check"),
        ('tags=["answer"]', "", "then a cell tagged answer"),
    ],
)
def test_a_bad_source_is_refused_with_what_to_fix(write_source, old, new, message):
    assert old in GOOD
    with pytest.raises(BadSource, match=f"01_x.py.*{message}"):
        exercises(write_source(GOOD.replace(old, new, 1)))


def test_numbers_are_the_lessons_and_without_a_gap(write_source):
    with pytest.raises(BadSource, match=r"exercise 2 .* '## Exercise 01\.2"):
        exercises(write_source(TITLE + PART.format(at=1) + PART.format(at=3)))
    with pytest.raises(BadSource, match=r"it has no '## Exercise 01\.1"):
        exercises(write_source(TITLE))


def test_sync_makes_solutions_and_exercises_and_writes_over_no_ones_answers(
    write_source, tmp_path, capsys
):
    write_source(GOOD)
    made = sync.everything(("01",), tmp_path)
    exercise = tmp_path / "exercises" / "01_x.ipynb"
    assert set(made) == {tmp_path / "solutions" / "01_x.ipynb", exercise}
    assert sync.write(made) and not sync.out_of_step(made)
    worked = exercise.read_text().replace('"execution_count": null', '"execution_count": 3', 1)
    exercise.write_text(worked)
    write_source(GOOD.replace("Do it.", "Do it now."))
    made = sync.everything(("01",), tmp_path)
    assert not sync.write(made)
    assert exercise.read_text() == worked
    assert "exercises/01_x.ipynb: kept" in capsys.readouterr().out
    assert sync.write(made, force=True)
    assert "Do it now." in exercise.read_text()
