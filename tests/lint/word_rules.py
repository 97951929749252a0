"""The field's words, in names and in texts. What is not clean yet is in PENDING."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from course_text import ROOT, Finding, matches, read

# Files and folders, from the root, that still have what these rules find.
PENDING: tuple[str, ...] = ()

FOLDERS = (
    *("notebooks", "scripts", "data_prep", "cloudformation", "workshop", "local-sagemaker"),
    *("tools", "tests", "docs"),
)
OWN_TEXTS = ("README.md", "CONTRIBUTING.md")  # of how the kit is built
GENERATED = {".venv", "build", "__pycache__"}
# They say nothing of what a value is; call it job, row, response, body, message, expected, actual.
NAMES = {"one", "found", "told", "said", "what", "asked", "wanted", "kept", "held", "own"}
NAMES |= {"mine", "more"}
CONSTANT = re.compile(r"_*(MOST|LEAST|LONGEST|LARGEST|SMALLEST|FEWEST)(_|$)")
# Old word -> the field's, with the reason. Everywhere in texts and code:
TERMS = {
    r"\blocal endpoints?\b": "emulator: an endpoint is SageMaker's word for a hosted model",
    r"(?i)\btwo[-_]tier\b": "hierarchical: what the literature calls that all-reduce",
    r"\b(inside|across) links?\b": "intra-node or inter-node link, as NCCL and MPI say",
    r"\bblind_ring\b": "interleaved_ring: it says what the placement is",
    r"\b(join|leave)_ranks\b": "init_distributed and cleanup, as in PyTorch's tutorials",
    r"\bmean_over_ranks\b": "all_reduce_mean: the operation's name",
    r"(?i)\bstrangers?\b": "client that is not authenticated: no metaphors",
    r"(?i)\bthe house\b": "the kit, or the repository: no metaphors",
    r"(?i)\b(another|one|its|our) face\b": "interface: no metaphors",
}
# Only in OWN_TEXTS and in what code says of packages; else a room may be one, with learners in it.
OWN_TERMS = {
    r"(?i)\brooms?\b": "subpackage",
    r"(?i)\bon the ground\b|\ba ground\b": "package root",
    r"(?i)\barrows?\b": "imports",
    r"(?i)\bthe endpoint\b": "emulator",
}


def check_names(path: Path, text: str) -> Iterator[Finding]:
    """Bindings whose names do not say what they hold; functions whose names are no verb phrase."""
    for node in ast.walk(ast.parse(text)):
        for line, name in bindings(node):
            if name.strip("_") in NAMES:
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


def findings(pending: tuple[str, ...] = PENDING) -> Iterator[Finding]:
    skipped = [
        ROOT / name for name in (*pending, "tests/lint/word_rules.py", "tests/lint/test_lint.py")
    ]
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    for path in sorted([ROOT / name for name in (*OWN_TEXTS, "conftest.py")] + paths):
        if path.suffix not in (".py", ".md") or GENERATED & set(path.parts):
            continue
        if any(path.is_relative_to(folder) for folder in skipped):
            continue
        yield from check_terms(path, read(path), TERMS)
        if path.parent == ROOT or path.name == "__init__.py":
            yield from check_terms(path, read(path), OWN_TERMS)
        if path.suffix == ".py":
            yield from check_names(path, read(path))
