"""Which values a lesson's parameter may have, by the value that its cell gives."""

from __future__ import annotations

import pytest

from workshop.course.parameters import UnknownParameter, WrongParameter, check, defaults

CELL = "target = 'local'\nepochs = 20\nrate = 0.05\nsubnets = []\nfast = False\nhalf = 1 / 2\n"
RIGHT = [("epochs", 0), ("epochs", 3), ("rate", 1), ("rate", 0.5), ("subnets", ["a"])]
RIGHT += [("fast", True), ("half", "anything"), ("target", "aws")]
WRONG = [
    ("epochs", 2.5, "a whole number that is not below 0, such as 20"),
    ("epochs", True, "a whole number"),
    ("epochs", "3", "a whole number"),
    ("epochs", None, "a whole number"),
    ("epochs", -1, "a whole number that is not below 0"),
    ("rate", float("nan"), "a number that is not below 0, such as 0.05"),
    ("rate", float("inf"), "a number"),
    ("rate", "fast", "a number"),
    ("subnets", "a", r"a list, such as \[\]"),
    ("fast", 1, "true or false, such as False"),
    ("target", 5, "a text, such as 'local'"),
]


@pytest.mark.parametrize(("name", "value"), RIGHT)
def test_a_value_that_is_right(name, value):
    check("05.ipynb", {name: value}, defaults(CELL))


@pytest.mark.parametrize(("name", "value", "wanted"), WRONG)
def test_a_value_that_is_wrong(name, value, wanted):
    with pytest.raises(WrongParameter, match=rf"05\.ipynb: {name} is .*; expected {wanted}"):
        check("05.ipynb", {name: value}, defaults(CELL))


def test_a_name_that_is_not_there():
    with pytest.raises(UnknownParameter, match=r"no parameter epoch\. It has: epochs, fast"):
        check("05.ipynb", {"epoch": 3}, defaults(CELL))
