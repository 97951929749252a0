"""README and CONTRIBUTING agree with the tree: its files, make's targets, the tests."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TARGET = re.compile(r"^([a-z][a-z0-9-]*):", re.MULTILINE)
BLOCK = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
TEST = re.compile(r"`((?:local-sagemaker/)?tests/[\w/]+\.py)::(test_\w+)`")
PATH = re.compile(r"\.?[\w-]+(/[\w.-]+)*/?")
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *(f"docs/{n}.md" for n in ("setup", "aws", "troubleshooting")),
]
page = pytest.mark.parametrize("page", PAGES)


def top_folders() -> set[str]:
    """The folders at the top of what git holds, or would hold; those for tools are hidden."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"this copy is no git repository: {done.stderr.strip()}")
    files = [Path(name) for name in done.stdout.splitlines() if (ROOT / name).exists()]
    return {path.parts[0] for path in files if len(path.parts) > 1 and path.parts[0][0] != "."}


def code(text: str) -> list[str]:
    """What stands between backquotes, and the lines of the blocks of commands."""
    inline = re.findall(r"`([^`\n]+)`", BLOCK.sub("", text))
    return inline + [line for block in BLOCK.findall(text) for line in block.splitlines()]


def paths(text: str) -> set[str]:
    """Words that are a path from the top: its first part is a folder there."""
    words = {word for line in code(text) for word in line.split() if "/" in word}
    folders = top_folders()
    return {w for w in words if PATH.fullmatch(w) and w.split("/")[0] in folders}


def targets(text: str) -> set[str]:
    """The targets in `make TARGET`."""
    return {name for line in code(text) for name in re.findall(r"\bmake ([a-z][\w-]*)", line)}


@page
def test_make_has_the_targets(page):
    named = targets((ROOT / page).read_text())
    assert page != "README.md" or {"lab", "run", "test"} <= named
    assert named - set(TARGET.findall((ROOT / "Makefile").read_text())) == set()


def test_every_target_of_make_is_documented():
    """`make help` shows what has a comment; `ready` is for the other targets."""
    makefile = (ROOT / "Makefile").read_text()
    shown = set(re.findall(r"^([a-z][a-z0-9-]*):.*## ", makefile, re.MULTILINE))
    assert set(TARGET.findall(makefile)) - shown == {"ready"}
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert set(phony.split()) == shown | {"ready"}


@page
def test_paths_exist(page):
    words = paths((ROOT / page).read_text())
    assert page.startswith("docs/") or {"workshop/", "notebooks/"} <= words
    assert [word for word in words if not (ROOT / word).exists()] == []


def test_the_tests_that_contributing_names_are_there_and_run_in_make_test():
    table = (ROOT / "CONTRIBUTING.md").read_text().split("| behaviour | its test |\n", 1)[1]
    rows = table.split("\n\n", 1)[0].splitlines()[1:]
    named = [match for row in rows for match in TEST.findall(row)]
    assert len(named) == len(rows) > 10, "a row without a test, or a test of another form"
    assert [f"{path}::{name}" for path, name in named if not runs(ROOT / path, name)] == []


def runs(path: Path, name: str) -> bool:
    """Whether a file has this test, and it is no soak."""
    tests = ast.walk(ast.parse(path.read_text())) if path.exists() else ()
    for node in tests:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return "pytest.mark.soak" not in map(ast.unparse, node.decorator_list)
    return False
