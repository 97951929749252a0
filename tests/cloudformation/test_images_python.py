"""The scripts on the Pythons of the images that the lessons name.

Few machines have such an interpreter, so this reads: every file of scripts/ in the grammar of the
oldest of them, and the names that it takes from the standard library.
"""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.version import Version

from workshop.jobs.lesson_jobs import JOBS, lesson_jobs
from workshop.paths import ROOT, SCRIPTS

# scripts/train run on 3.9, too: the last image with SMDDP for TensorFlow (2.11) has it.
FIRST = {"demos": Version("3.10"), "train": Version("3.9")}
FILES = sorted(SCRIPTS.rglob("*.py"))
NEWER = tomllib.loads(Path(__file__).with_name("newer_names.toml").read_text())
BUILT_IN = {"ExceptionGroup", "BaseExceptionGroup"}


def oldest(path: Path) -> Version:
    """The oldest Python that a script has to run on."""
    return FIRST.get(path.relative_to(SCRIPTS).parts[0], FIRST["demos"])


def too_new(text: str, first: Version = FIRST["demos"]) -> list[str]:
    """What a module uses that this Python does not have. Raises SyntaxError for its grammar."""
    tree, newer_names, modules = ast.parse(text, feature_version=first.release[:2]), [], {}
    before_3_10 = first < Version("3.10")
    for node in ast.walk(tree):
        if before_3_10:
            newer_names += newer_than_3_9(node)
        if isinstance(node, ast.TryStar):
            newer_names.append("except*")
        if isinstance(node, ast.Import):
            modules |= {each.asname or each.name: each.name for each in node.names}
            newer_names += [each.name for each in node.names if "" in newer(each.name, before_3_10)]
        if isinstance(node, ast.ImportFrom) and (names := newer(node.module or "", before_3_10)):
            newer_names += [each.name for each in node.names if each.name in names or "" in names]
        if isinstance(node, ast.Name) and node.id in BUILT_IN:
            newer_names.append(node.id)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id, "")
            newer_names += [node.attr] if node.attr in newer(module, before_3_10) else []
    return newer_names


def newer(module: str, before_3_10: bool) -> set[str]:
    """The names of a module that are too new."""
    pythons = ["3.11 and 3.12", *(["3.10"] if before_3_10 else [])]
    return {name for python in pythons for name in NEWER[python].get(module, [])}


def newer_than_3_9(node: ast.AST) -> list[str]:
    """What 3.9 refuses only when it runs: unions of types, zip(strict), slots of a dataclass."""
    if isinstance(node, ast.Call):
        expected = {"strict", "slots", "kw_only"}
        return [word.arg for word in node.keywords if word.arg in expected]
    annotations = [getattr(node, "annotation", None), getattr(node, "returns", None)]
    parts = [part for each in annotations if each is not None for part in ast.walk(each)]
    if any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.BitOr) for part in parts):
        return ["a union of types in an annotation"]
    return []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SCRIPTS)))
def test_a_script_can_be_read_by_the_oldest_python(path):
    assert too_new(path.read_text(encoding="utf-8"), oldest(path)) == []


@pytest.mark.parametrize("folder", FIRST)
def test_ruff_finds_no_newer_syntax(folder):
    """It also knows what the grammar of `ast` lets through, such as quotes inside f-strings."""
    first = "py" + str(FIRST[folder]).replace(".", "")
    command = ["check", "--isolated", "--no-cache", "--select", "E9", "--target-version", first]
    command = [sys.executable, "-m", "ruff", *command, SCRIPTS / folder]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_lesson_names_an_image_with_an_older_python():
    for python in {job.py_version for lesson in JOBS for job in lesson_jobs(lesson)}:
        digits = re.fullmatch(r"py(\d)(\d+)", python)
        assert Version(".".join(digits.groups())) >= max(FIRST.values())
