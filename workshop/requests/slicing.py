"""Which statements of a lesson does the start of its jobs need?

A backward slice: from each statement that starts a job, back to those that give a value to what
it uses, and to what these use in turn. Lessons, plots, checks and other jobs' results stay out.
"""

from __future__ import annotations

import ast
import dis
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import CodeType

STARTS = ("fit", "run_jobs")  # methods and functions that start a job
MUTATORS = ("append", "extend", "insert", "setdefault", "update")
PLAIN = (ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


@dataclass(frozen=True)
class Statement:
    """A statement at the top level of a lesson.

    reads, binds: names that it uses, and gives a value to. changes: names whose value it alters,
    as `jobs["x"] = …` does. certain: what it binds has no older value afterwards.
    """

    node: ast.stmt
    reads: frozenset[str]
    binds: frozenset[str]
    changes: frozenset[str]
    certain: bool

    @property
    def starts_job(self) -> bool:
        """Whether a training job begins here."""
        return any(_method(one) in STARTS for one in ast.walk(self.node))


def statements(sources: Iterable[str]) -> list[Statement]:
    """The top-level statements of code cells, in order."""
    return [_statement(node) for source in sources for node in ast.parse(source).body]


def needed(found: list[Statement], given: frozenset[str] = frozenset()) -> list[Statement]:
    """Those that start jobs and those that these need, in order.

    given: names that are there anyway; nothing is taken in for them.
    """
    inside = _free_names(found)
    wanted: set[str] = set()
    kept = []
    for one in reversed(found):
        if not (one.starts_job or (one.binds | one.changes) & wanted):
            continue
        kept.append(one)
        if one.certain:
            wanted -= one.binds
        wanted |= _with_bodies(one.reads, inside) | one.changes
        wanted -= given
    return kept[::-1]


def _statement(node: ast.stmt) -> Statement:
    code = compile(ast.Module([node], []), "a lesson", "exec")
    reads = frozenset(_names(code, ("LOAD_NAME", "LOAD_GLOBAL")))
    binds = frozenset(_names(code, ("STORE_NAME", "STORE_GLOBAL"), nested=False))
    return Statement(node, reads, binds, frozenset(_changes(node)), isinstance(node, PLAIN))


def _names(code: CodeType, operations: tuple[str, ...], nested: bool = True) -> Iterator[str]:
    """The names that these bytecode operations use, in functions and comprehensions too."""
    for one in dis.get_instructions(code):
        if one.opname in operations:
            yield one.argval
    for constant in code.co_consts if nested else ():
        if isinstance(constant, CodeType):
            yield from _names(constant, operations)


def _changes(node: ast.stmt) -> Iterator[str]:
    """Names whose value is altered in place."""
    for one in ast.walk(node):
        targets = one.targets if isinstance(one, ast.Assign) else []
        targets = [one.target] if isinstance(one, ast.AugAssign) else targets
        for target in targets:
            if isinstance(target, ast.Subscript | ast.Attribute) and (name := _root(target)):
                yield name
        if _method(one) in MUTATORS and (name := _root(one.func)):
            yield name


def _root(node: ast.expr) -> str:
    """jobs, for jobs["x"].y."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _method(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _free_names(found: list[Statement]) -> dict[str, frozenset[str]]:
    """Function -> the names that its body uses. They are read when it is called, so late."""
    functions = [one for one in found if isinstance(one.node, ast.FunctionDef)]
    return {one.node.name: one.reads for one in functions}


def _with_bodies(reads: frozenset[str], inside: dict[str, frozenset[str]]) -> set[str]:
    found, new = set(), set(reads)
    while new:
        found |= new
        new = set().union(*(inside.get(name, frozenset()) for name in new)) - found
    return found
