"""Each rule of this folder sees what it is there for; `make lint` holds the texts to them."""

import json

import lesson_rules
import pytest
import word_rules
from course_text import NOTEBOOKS

LESSON = NOTEBOOKS / "00_setup.py"
MARKDOWN = "# %% [markdown]\n# # 00 · Title\n#\n# "
CODE = '# %% [markdown]\n# # 00 · Title\n\n# %% tags=["{tag}"]\n'
PARAMETERS = CODE.format(tag="parameters") + 'target = "local"\nseat = "me"\n'
EMPTY = {"metadata": {"tags": ["deterministic"]}, "outputs": []}


@pytest.mark.parametrize(
    "rule, text, message",
    [
        ("one_parameters_cell", CODE.format(tag="x"), "1: 0 cells are tagged parameters"),
        ("one_parameters_cell", PARAMETERS + "n = 2 * 3\n", "7: the parameters cell has more"),
        (
            "cells_are_short_and_asserts_explain",
            CODE.format(tag="x") + "x = 1\n" * 26,
            "5: 26 lines",
        ),
        ("cells_are_short_and_asserts_explain", PARAMETERS + "\nassert x\n", "8: an assert"),
        ("header_quiz_and_exercises", MARKDOWN, "the header lacks **Cost on AWS:**"),
        ("header_quiz_and_exercises", MARKDOWN, 'nowhere is workshop.quiz("00")'),
        ("nothing_private_or_installed", MARKDOWN + "of 012345678901", "4: an account number or"),
        ("nothing_private_or_installed", PARAMETERS + "!pip install x", "7: a cell writes"),
        ("folded", PARAMETERS + "\nassert x, 'why'\n", "5: it saves or asserts"),
        ("folded", CODE.format(tag="results") + "guess.compare(n=1)\n", "5: the answer to a guess"),
        ("folded", CODE.format(tag="results") + "x = 1\n", "4: a cell tagged results without"),
        ("folded", PARAMETERS + "guess = workshop.guess(n='?')\n", "1: 1 guesses, 0"),
        ("links_images_formulas", MARKDOWN + "from $5 to $6", "4: write in words"),
        ("links_images_formulas", MARKDOWN + "a [link](nowhere.ipynb#x)", "4: the link to nowhere"),
        ("links_images_formulas", MARKDOWN + "![](00_setup.ipynb)", "4: the image 00_setup.ipynb"),
        ("links_images_formulas", MARKDOWN + "<img src='x'>", "4: an image without"),
        ("outputs", json.dumps({"cells": [{"outputs": ["x"]}]}), "1: cell 1 was committed"),
        ("outputs", json.dumps({"cells": [{"execution_count": 1}]}), "1: cell 1 was committed"),
        ("outputs", json.dumps({"cells": [EMPTY]}), "1: cell 1 is deterministic"),
    ],
)
def test_a_fault_of_a_lesson_is_seen(rule, text, message):
    findings = [str(finding) for finding in getattr(lesson_rules, rule)(LESSON, text)]
    assert any(message in finding for finding in findings), findings
    assert all(finding.startswith("notebooks/00_setup.py:") for finding in findings)


@pytest.mark.parametrize(
    "code, message",
    [
        ("found = 1", "1: found: name what it holds"),
        ("def f(_told_, *, more=1): pass", "1: more: name what it holds"),
        ("from x import y as one", "1: one: name what it holds"),
        ("for job, said in jobs:\n    pass", "1: said: name what it holds"),
        ("MOST_INSTANCES = 1", "1: MOST_INSTANCES: MAX_... or MIN_..."),
        ("def of_job(): pass", "1: of_job(): from_..., for_... or a verb"),
        ("def why_not(): pass", "1: why_not(): ..._reason()"),
    ],
)
def test_a_name_that_says_nothing_is_seen(code, message):
    findings = [str(finding) for finding in word_rules.check_names(LESSON, code)]
    assert f"notebooks/00_setup.py:{message}" in findings
