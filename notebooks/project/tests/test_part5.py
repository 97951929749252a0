"""Part 5: six numbers, each with two sentences."""

import re
import tomllib
from pathlib import Path

import pytest

from harness.ranks import SUBMISSION

NAMES = ("largest_n", "zero3_bytes", "link_time", "cost", "adam_memory", "checkpoint_interval")


@pytest.mark.points(1)
@pytest.mark.parametrize("name", NAMES)
def test_number(name, pytestconfig):
    answer = tomllib.loads((SUBMISSION / "answers.toml").read_text())[name]
    number, sentences = answer["number"], re.findall(r"\S[.!?](?:\s|$)", answer["why"])
    if not number or len(sentences) < 2:
        pytest.fail(f"answers.toml, [{name}]: a number and two sentences, please.", pytrace=False)
    if (key := pytestconfig.getoption("key")) is None:
        pytest.skip("filled in; the instructor's key grades it")
    right = tomllib.loads(Path(key).read_text())[name]
    if abs(number - right["number"]) > right["tolerance"] * right["number"]:
        pytest.fail(f"answers.toml, [{name}]: {number} is wrong.", pytrace=False)
