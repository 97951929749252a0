"""Which values a lesson's parameter may have, by the value that its cell gives."""

import nbformat
import pytest

from workshop.jobs.lesson_jobs import WrongParameter, check_parameters, parameters_of

CELL = "target = 'local'\nepochs = 20\nrate = 0.05\nsubnets = []\nfast = False\nhalf = 1 / 2\n"
RIGHT = [("epochs", 3), ("rate", 1), ("rate", 0.5), ("subnets", ["a"])]
RIGHT += [("fast", True), ("half", "anything"), ("target", "aws")]
WRONG = [
    ("epochs", 2.5, "int that is not below 0, such as 20"),
    ("epochs", -1, "int that is not below 0"),
    ("rate", float("nan"), "float that is not below 0"),
    ("epochs", True, "int"),
    ("epochs", None, "int"),
    ("rate", "fast", "float that is not below 0, such as 0.05"),
    ("subnets", "a", r"list, such as \[\]"),
    ("fast", 1, "bool, such as False"),
]


@pytest.fixture(scope="module")
def lesson(tmp_path_factory):
    cell = nbformat.v4.new_code_cell(CELL, metadata={"tags": ["parameters"]})
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": kernel})
    path = tmp_path_factory.mktemp("lesson") / "05.ipynb"
    nbformat.write(notebook, path)
    return path


@pytest.mark.parametrize(("name", "value"), RIGHT)
def test_a_value_that_is_right(lesson, name, value):
    check_parameters(lesson.name, {name: value}, parameters_of(lesson))


@pytest.mark.parametrize(("name", "value", "expected"), WRONG)
def test_a_value_that_is_wrong(lesson, name, value, expected):
    with pytest.raises(WrongParameter, match=rf"05\.ipynb: {name} is .*; expected {expected}"):
        check_parameters(lesson.name, {name: value}, parameters_of(lesson))


def test_a_name_that_is_not_there(lesson):
    with pytest.raises(WrongParameter, match=r"no parameter epoch\. It has: epochs, fast"):
        check_parameters(lesson.name, {"epoch": 3}, parameters_of(lesson))
