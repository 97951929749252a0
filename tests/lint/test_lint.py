"""The course's texts keep the rules of this folder, and each rule sees what it is there for."""

import json
import subprocess
import sys

import glossary_rules
import instructor_rules
import lesson_rules
import pytest
import word_rules
from course_text import COVERAGE, GLOSSARY, GUIDE, NOTEBOOKS, ROOT, cells, read

LESSON = NOTEBOOKS / "00_setup.py"
MARKDOWN = "# %% [markdown]\n# # 00 · Title\n#\n# "
CODE = '# %% [markdown]\n# # 00 · Title\n\n# %% tags=["{tag}"]\n'
PARAMETERS = CODE.format(tag="parameters") + 'target = "local"\nseat = "me"\n'
EMPTY = {"metadata": {"tags": ["deterministic"]}, "outputs": []}


def test_the_texts_keep_the_rules():
    done = subprocess.run([sys.executable, ROOT / "tests" / "lint"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


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


def test_what_is_no_fault_is_not_reported():
    fine = r"\$5 to \$6, `$x$`, [page](https://x.org/y), `[link](nowhere)`, <img alt='two' src='x'>"
    assert list(lesson_rules.links_images_formulas(LESSON, MARKDOWN + fine)) == []
    shown = json.dumps({"cells": [EMPTY | {"outputs": ["x"]}, {"outputs": []}]})
    assert list(lesson_rules.outputs(LESSON, shown)) == []


@pytest.mark.parametrize("wrong_ones, seen", [(2, True), (1, False)])
def test_a_quiz_whose_right_choices_are_the_longest_is_seen(tmp_path, wrong_ones, seen):
    short = 'text = "Why?"\nchoices = ["one", "no", "maybe"]\nanswer = 0\nwhy = "So."\n'
    parts = [short.replace("one", "because of this")] * wrong_ones + [short] * (3 - wrong_ones)
    text = "".join(f"[[question]]\n{part}" for part in parts)
    (tmp_path / "lesson_00.toml").write_text(text)
    assert bool(list(lesson_rules.quiz_lengths(tmp_path))) == seen


ROW = "| rank | the number of a process | 랭크 | ランク | 进程号 | 01 |"


@pytest.mark.parametrize(
    "wrong, message",
    [
        (ROW.replace("ランク", ""), "rank: a cell is missing or empty"),
        (ROW.replace("ランク", "랭크"), "rank: '랭크' is not Japanese"),
        (ROW.replace("| rank |", "| xylophone |"), "lesson 01 never says 'xylophone'"),
        (f"{ROW}\n{ROW}", "rank stands here 2 times"),
    ],
)
def test_a_fault_of_the_glossary_is_seen(wrong, message):
    head = "| term | meaning | a | b | c | lesson |\n|---|---|---|---|---|---|\n"
    assert list(glossary_rules.check_terms(head + ROW)) == []
    assert message in [finding.message for finding in glossary_rules.check_terms(head + wrong)]


def test_another_spelling_is_seen_and_code_and_quotations_are_not():
    instead = glossary_rules.banned(read(GLOSSARY))
    text = MARKDOWN + "An allreduce over two Nodes."
    assert [str(finding) for finding in glossary_rules.check_spellings(LESSON, text, instead)] == [
        "notebooks/00_setup.py:4: write all-reduce, not allreduce",
        "notebooks/00_setup.py:4: write instance, or host, not nodes",
    ]
    text = MARKDOWN + "`allreduce`, `--nodes 2`, and “per node” [a](b/node.html)"
    assert list(glossary_rules.check_spellings(LESSON, text, instead)) == []


def test_a_fault_of_the_instructors_pages_is_seen():
    coverage, place = read(COVERAGE), instructor_rules.wrong_place
    assert place("00", "Create the stacks", "code `deploy`") is None
    assert "has no section" in place("00", "No such section", "code `deploy`")
    assert "no lesson 98" in place("98", "Set up", "code `deploy`")
    assert all(
        "is none of" in place("00", "Create the stacks", word) for word in ("target", "result ``")
    )
    for evidence in ("code `no such`", "test `no.py::test_no`", "result `no`", "source `no`"):
        assert "there is no " in place("00", "Create the stacks", evidence)
    missing = coverage.replace("\n| 16 |", "\n| 15 |")
    messages = [finding.message for finding in instructor_rules.check_coverage(missing)]
    assert messages == ["row 16 is missing, or was never given", "row 15 is there twice"]
    right = coverage.replace("| 12 | ✗ |", "| 12 |  |")
    (finding,) = instructor_rules.check_misunderstandings(read(GUIDE), right)
    assert "row 12" in finding.message


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


def test_an_old_word_is_seen():
    text = "A job\nof the local endpoint, with a two-tier all-reduce. A room for 20."
    findings = list(word_rules.check_terms(LESSON, text, word_rules.WORDS["terms"]))
    assert [(finding.line, finding.message[:16]) for finding in findings] == [
        (2, "'local endpoint'"),
        (2, "'two-tier': writ"),
    ]


def test_cells_are_read_with_their_lines():
    text = "# ---\n# x\n# ---\n\n# %% [markdown]\n# ## One\n#\n# > two\n\n"
    first, second = cells(text + '# %% tags=["a", "b"]\nx = 3\n')
    assert (first.kind, first.line, first.text) == ("markdown", 6, "## One\n\n> two\n")
    assert (second.line, second.text, second.tags) == (11, "x = 3", {"a", "b"})
