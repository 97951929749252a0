"""The scripts on the Pythons of the images that the lessons name.

Few machines have such an interpreter, so this reads: every file of scripts/ in the grammar of the
oldest of them, and the names that it takes from the standard library.
"""

import ast
import re
import subprocess
import sys

import pytest
from packaging.version import Version

from workshop.account.preflight import JobConfiguration, check
from workshop.account.preflight.facts import facts
from workshop.jobs.lesson_jobs import JOBS, lesson_jobs
from workshop.paths import ROOT, SCRIPTS, TRAIN

FIRST = Version(facts()["scripts"]["first_python"])
FILES = sorted(SCRIPTS.rglob("*.py"))
NEWER = {  # module -> names that came after 3.10 ("What's New" of 3.11 and 3.12); "" is all of it
    "tomllib": {""},
    "wsgiref.types": {""},
    "datetime": {"UTC"},
    "enum": {"StrEnum", "verify", "member", "nonmember", "global_enum", "EnumType"},
    "asyncio": {"TaskGroup", "Runner", "timeout", "Barrier"},
    "contextlib": {"chdir"},
    "hashlib": {"file_digest"},
    "itertools": {"batched"},
    "math": {"cbrt", "exp2", "sumprod"},
    "operator": {"call"},
    "typing": {
        *("Self", "Never", "LiteralString", "assert_never", "assert_type", "reveal_type"),
        *("Required", "NotRequired", "Unpack", "TypeVarTuple", "dataclass_transform", "override"),
    },
}
BUILT_IN = {"ExceptionGroup", "BaseExceptionGroup"}


def too_new(text: str) -> list[str]:
    """What a module uses that Python 3.10 does not have. Raises SyntaxError for its grammar."""
    tree, found, modules = ast.parse(text, feature_version=FIRST.release[:2]), [], {}
    for node in ast.walk(tree):
        if isinstance(node, ast.TryStar):
            found.append("except*")
        if isinstance(node, ast.Import):
            modules |= {one.asname or one.name: one.name for one in node.names}
            found += [one.name for one in node.names if "" in NEWER.get(one.name, ())]
        if isinstance(node, ast.ImportFrom) and (names := NEWER.get(node.module or "")):
            found += [one.name for one in node.names if one.name in names or "" in names]
        if isinstance(node, ast.Name) and node.id in BUILT_IN:
            found.append(node.id)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id, "")
            found += [node.attr] if node.attr in NEWER.get(module, ()) else []
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SCRIPTS)))
def test_a_script_can_be_read_by_the_oldest_python(path):
    assert too_new(path.read_text(encoding="utf-8")) == []


def test_ruff_finds_no_newer_syntax():
    """It also knows what the grammar of `ast` lets through, such as quotes inside f-strings."""
    command = ["check", "--isolated", "--no-cache", "--select", "E9", "--target-version", "py310"]
    command = [sys.executable, "-m", "ruff", *command, SCRIPTS]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "import tomllib",
        "from datetime import UTC",
        "import datetime as d\nd.UTC",
        "from typing import Self",
        "try:\n    pass\nexcept* OSError:\n    pass",
        "raise ExceptionGroup('', [])",
    ],
)
def test_something_newer_would_be_found(text):
    try:
        assert too_new(text)
    except SyntaxError as error:
        assert "3.11" in str(error)


def test_no_lesson_names_an_image_with_an_older_python():
    for number in JOBS:
        for job in lesson_jobs(number):
            digits = re.fullmatch(r"py(\d)(\d+)", job.arguments["py_version"])
            assert Version(".".join(digits.groups())) >= FIRST, f"{number}: {job.name}"


@pytest.mark.parametrize("path", sorted(TRAIN.glob("*.py")), ids=lambda path: path.name)
def test_preflight_refuses_a_script_of_ours_in_an_image_with_an_older_python(path):
    job = JobConfiguration(
        framework="tensorflow",
        framework_version="2.11.0",
        py_version="py39",
        instance_type="ml.c5.xlarge",
        instance_count=1,
        script=path.read_text(encoding="utf-8"),
    )
    told = [one.reason for one in check(job) if one.ok is False]
    assert any("needs Python 3.10; the image of tensorflow 2.11.0 has 3.9" in one for one in told)
