"""The field's words, in names and in texts: words.toml has those that are not."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from course_text import ROOT, Finding, matches, read

FOLDERS = (
    *("notebooks", "scripts", "data_prep", "cloudformation", "workshop", "local-sagemaker"),
    *("tools", "tests", "docs"),
)
OWN_TEXTS = ("README.md", "CONTRIBUTING.md")  # of how the kit is built
GENERATED = {".venv", "build", "__pycache__"}
WORDS = tomllib.loads(Path(__file__).with_name("words.toml").read_text())
CONSTANT = re.compile(r"_*(MOST|LEAST|LONGEST|LARGEST|SMALLEST|FEWEST)(_|$)")


def check_names(path: Path, text: str) -> Iterator[Finding]:
    """Bindings whose names do not say what they hold; functions whose names are no verb phrase."""
    for node in ast.walk(ast.parse(text)):
        for line, name in bindings(node):
            if name.strip("_") in WORDS["names"]:
                yield Finding(path, line, f"{name}: name what it holds")
            elif CONSTANT.match(name):
                yield Finding(path, line, f"{name}: MAX_... or MIN_...")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            word, _, _ = node.name.strip("_").partition("_")
            if word == "of":
                yield Finding(path, node.lineno, f"{node.name}(): from_..., for_... or a verb")
            if word == "why":
                yield Finding(path, node.lineno, f"{node.name}(): ..._reason()")


def bindings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of what this node binds."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.lineno, node.id
    elif isinstance(node, ast.arg):
        yield node.lineno, node.arg
    elif isinstance(node, ast.alias):
        yield node.lineno, node.asname or ""
    elif isinstance(
        node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler
    ):
        yield node.lineno, node.name or ""


def check_terms(path: Path, text: str, terms: dict[str, str]) -> Iterator[Finding]:
    for pattern, instead in terms.items():
        for line, match in matches(pattern, text):
            yield Finding(path, line, f"{match[0]!r}: write {instead}")


def findings() -> Iterator[Finding]:
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    for path in sorted([ROOT / name for name in (*OWN_TEXTS, "conftest.py")] + paths):
        if path.suffix not in (".py", ".md") or GENERATED & set(path.parts):
            continue
        if path == ROOT / "tests/lint/test_lint.py":  # it has the words
            continue
        yield from check_terms(path, read(path), WORDS["terms"])
        if path.parent == ROOT or path.name == "__init__.py":
            yield from check_terms(path, read(path), WORDS["own_terms"])
        if path.suffix == ".py":
            yield from check_names(path, read(path))
