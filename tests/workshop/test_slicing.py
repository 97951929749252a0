"""Of a lesson's statements, those that its jobs need are run, and no other."""

import ast

import nbformat
import pytest

from workshop.requests import CannotBuild, building
from workshop.requests.slicing import needed, statements


def kept(*cells: str, given=()) -> list[str]:
    """The source of the statements that are needed."""
    return [ast.unparse(one.node) for one in needed(statements(cells), frozenset(given))]


def test_what_a_job_does_not_need_stays_out():
    found = kept(
        "a = 1\nb = 2", "print(a)\nplot(b)", "job = make(a)", "job.fit(wait=False)", "c = a + 1"
    )
    assert found == ["a = 1", "job = make(a)", "job.fit(wait=False)"]


def test_a_new_value_hides_the_old_one():
    found = kept("a = old()", "a = new()", "job = make(a)\njob.fit()", "a = later()")
    assert found == ["a = new()", "job = make(a)", "job.fit()"]


def test_each_job_gets_the_value_of_its_time():
    cells = ("s = 1", "one = make(s)", "one.fit()", "s = 2", "two = make(s)", "two.fit()")
    assert kept(*cells) == list(cells)


def test_changes_in_place_are_taken_in():
    cells = ("jobs = {}", "jobs['x'] = make(k)", "k = 1", "jobs.update(more)", "run_jobs(jobs)")
    assert kept(*cells) == []  # run_jobs alone could be anybody's function
    cells = (*cells[:-1], "workshop.run_jobs(jobs)")
    assert kept(*cells, given=["workshop"]) == ["jobs = {}", *cells[1:2], *cells[3:]]


def test_a_function_sees_what_is_there_when_it_is_called():
    cells = (
        "def make(n):\n    return inner(size * n)",
        "def inner(n):\n    return Job(n, colour)",
        "size = 1",
        "colour = 'red'",
        "unused = 2",
        "job = make(3)",
        "job.fit()",
    )
    assert kept(*cells) == [*cells[:4], *cells[5:]]


def test_a_name_inside_a_comprehension_is_no_name_of_the_lesson():
    found = kept(
        "x = costly()", "rows = [x for x in y]", "y = 1", "j = make([x for x in z])", "j.fit()"
    )
    assert found == ["j = make([x for x in z])", "j.fit()"]


def test_a_value_that_may_not_be_given_keeps_the_older_one():
    cells = ("a = 1", "if b:\n    a = 2", "job = make(a)", "job.fit()")
    assert kept(*cells) == list(cells)


@pytest.fixture
def lesson(tmp_path, monkeypatch):
    """Write a lesson 77 of these cells; the first holds its parameters."""

    def write(*cells: str) -> str:
        page = nbformat.v4.new_notebook()
        page.cells = [nbformat.v4.new_code_cell(one) for one in cells]
        page.cells[0].metadata["tags"] = ["parameters"]
        path = tmp_path / "77_made_up.ipynb"
        nbformat.write(page, path)
        monkeypatch.setattr(building, "chosen", lambda _: [path])
        return "77"

    return write


JOB = (
    "from sagemaker.pytorch import PyTorch\n"
    "import workshop\n"
    "session = workshop.session(target=target)\n"
    "one = PyTorch(entry_point='show_ranks.py', framework_version='2.2.0', py_version='py310',\n"
    "    instance_type='ml.c5.xlarge', instance_count=count, **session.job_settings('one'))"
)


def test_parameters_override_those_of_the_lesson(lesson):
    number = lesson("target = 'local'\ncount = 2", JOB, "one.fit(wait=False)")
    (built,) = building.build(number, "aws", {"count": 5})
    assert built.name == "one" and built.request["ResourceConfig"]["InstanceCount"] == 5
    assert building.build(number)[0].request["ResourceConfig"]["InstanceCount"] == 2
    with pytest.raises(CannotBuild, match=r"no parameter counts\. It has: count, target"):
        building.build(number, "aws", {"counts": 5})


def test_a_job_that_depends_on_another_ones_result_cannot_be_built(lesson):
    number = lesson(
        "target = 'local'\ncount = 2",
        JOB,
        "one.fit(wait=False)\nresult = workshop.follow(one)",
        "two = one if result.good else None\ntwo.fit(wait=False)",
    )
    with pytest.raises(CannotBuild, match="depends on the result of another one"):
        building.build(number)


def test_whatever_would_need_an_answer_of_aws_is_refused(lesson):
    number = lesson(
        "target = 'local'\ncount = 2",
        JOB,
        "names = session.client('s3').list_buckets()['Buckets']\none.fit(names, wait=False)",
    )
    with pytest.raises(CannotBuild, match="ListBuckets of s3 was called"):
        building.build(number)
