"""What a script's text says of the lines at which its ranks are."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from workshop.diagnosis.evidence import Collective, Place, is_script

# How scripts ask which rank they are
RANK = (
    r"(?i)(^|[^a-z])(local_?|global_?|world_?)?rank([^a-z]|$)"
    r"|is_(main|master|chief|(global|local|world)_zero)|main_process"
)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
EXITS = ("sys.exit", "os._exit", "exit", "quit")


def loops_around(stack: Sequence[Place]) -> set[tuple[str, int]] | None:
    """(file, first line) of the loops in which a stack is; None if its script cannot be read."""
    places = [place for place in stack if is_script(place)]
    loops: set[tuple[str, int]] = set()
    for file, line, _ in places:
        of_file = _loops(file)
        if of_file is None:
            return None
        loops |= {(file, first) for first, last in of_file if first <= line <= last}
    return loops if places else None


def branch_on_rank(
    stack: Sequence[Place], other: Sequence[Place] = (), elsewhere: Sequence[Place] = ()
) -> Place | None:
    """The innermost `if` that asks for the rank around a call: without `else`, or with the other
    rank in its other branch; or before a call, with a return for the ranks that are elsewhere.
    """
    lines = {(file, line) for file, line, _ in other}
    for file, line, function in filter(is_script, stack):
        for node in reversed(_nodes(file, ast.If)):
            here, there = (node.body, node.orelse)
            if _is_in(line, there):
                here, there = there, here
            apart = any(name == file and _is_in(number, there) for name, number in lines)
            inside = _is_in(line, here) and (apart or not node.orelse)
            inside = inside or _only_some_pass(node, (file, line), elsewhere)
            if inside and _asks_for_the_rank(node.test):
                return file, node.lineno, function
    return None


def _asks_for_the_rank(test: ast.expr) -> bool:
    """Whether it may differ among ranks: by -1 scripts ask whether there are ranks at all."""
    return bool(re.search(RANK, re.sub(r"\S+ ((!=|==|>) -1|(>=|<) 0)\b", "", ast.unparse(test))))


def _only_some_pass(node: ast.If, here: tuple[str, int], elsewhere: Sequence[Place]) -> bool:
    """Whether a line comes behind an `if` that ends in a return, which other ranks have taken."""
    file, line = here
    functions = [f for f in _nodes(file, ast.FunctionDef) if _is_in(line, f.body)]
    around = max(functions, key=lambda function: function.lineno, default=None)
    if around is None or not _is_in(node.lineno, around.body):
        return False
    behind = range((node.end_lineno or 0) + 1, (around.end_lineno or 0) + 1)
    others = [number for name, number, _ in elsewhere if name == file]
    returns = isinstance(node.body[-1], ast.Return) and not node.orelse
    return returns and line in behind and bool(elsewhere) and not set(others) & set(behind)


def branch_apart(stack: Sequence[Place], other: Sequence[Place]) -> Place | None:
    """The innermost `if` around one call and not around the other, in loops that both are in."""
    there = {(file, line) for file, line, _ in other if is_script((file, line, ""))}
    for file, line, function in filter(is_script, stack):
        lines = [number for name, number in there if name == file]
        for node in reversed(_nodes(file, ast.If)):
            branch = node.body if _is_in(line, node.body) else node.orelse
            if not _is_in(line, branch) or any(_is_in(number, branch) for number in lines):
                continue
            loops = [(a, b) for a, b in _loops(file) or [] if a <= node.lineno <= b]
            if loops and all(any(a <= number <= b for number in lines) for a, b in loops):
                return file, node.lineno, function
    return None


def break_between(first: Sequence[Place], second: Sequence[Place]) -> Place | None:
    """The `if` with the `break` by which one rank may have left a loop that the other is in."""
    return _break_out_of(first, second) or _break_out_of(second, first)


def _break_out_of(stack: Sequence[Place], other: Sequence[Place]) -> Place | None:
    """The `if` with the `break` of the outermost loop that one stack is in and the other is not."""
    left = sorted((loops_around(stack) or set()) - (loops_around(other) or set()))
    for file, first in left[:1]:
        function = next((name for path, _, name in stack if path == file), "")
        for node in _nodes(file, ast.If):
            breaks = any(isinstance(statement, ast.Break) for statement in node.body)
            loop = _innermost_loop(file, node.lineno)
            if breaks and loop and loop.lineno == first:
                return file, node.lineno, function
    return None


def continues_before(place: Place) -> str:
    """Where a `continue` in its loop may have left a line out, such as " (train.py:7)"; or ""."""
    file, line, _ = place
    loop = _innermost_loop(file, line)
    numbers = [node.lineno for node in _nodes(file, ast.Continue) if node.lineno < line]
    lines = [number for number in numbers if loop and _innermost_loop(file, number) is loop]
    return f" ({', '.join(f'{Path(file).name}:{number}' for number in lines)})" if lines else ""


def try_that_goes_on(stack: Sequence[Place]) -> Place | None:
    """The innermost `try` around a call with an `except` after which the script may go on."""
    for file, line, function in filter(is_script, stack):
        for node in reversed(_nodes(file, ast.Try)):
            ends = [handler.body[-1] for handler in node.handlers]
            if _is_in(line, node.body) and not all(_ends_the_script(end) for end in ends):
                return file, node.lineno, function
    return None


def lines_with(calls: Iterable[Collective], words: str) -> str:
    """Where a regular expression is in their scripts, such as "train.py:7, train.py:9"."""
    files = sorted({place[0] for call in calls for place in filter(is_script, call.stack)})
    lines = ((file, *line) for file in files for line in enumerate(linecache.getlines(file), 1))
    return ", ".join(
        f"{Path(file).name}:{no}" for file, no, text in lines if re.search(words, text)
    )


def in_for_loop(place: Place) -> bool:
    """Whether a line's innermost loop is a `for`: it works something off, and polls nothing."""
    return isinstance(_innermost_loop(*place[:2]), (ast.For, ast.AsyncFor))


def _ends_the_script(statement: ast.stmt) -> bool:
    """Whether it raises, or ends the process, as `sys.exit(1)` does."""
    match statement:
        case ast.Raise():
            return True
        case ast.Expr(value=ast.Call(func=function)):
            return ast.unparse(function) in EXITS
    return False


def _innermost_loop(file: str, line: int) -> ast.stmt | None:
    around = [node for node in _nodes(file, *LOOPS) if _is_in(line, [node])]
    return max(around, key=lambda node: node.lineno, default=None)


def _is_in(line: int, body: Sequence[ast.stmt]) -> bool:
    return bool(body) and body[0].lineno <= line <= (body[-1].end_lineno or 0)


@lru_cache(maxsize=32)
def _loops(file: str) -> list[tuple[int, int]] | None:
    """First and last lines of a file's loops."""
    if _tree(file) is None:
        return None
    nodes = _nodes(file, *LOOPS)
    return [(node.lineno, node.end_lineno or node.lineno) for node in nodes]


def _nodes(file: str, *kinds: type) -> list:
    tree = _tree(file)
    return [] if tree is None else [node for node in ast.walk(tree) if isinstance(node, kinds)]


@lru_cache(maxsize=32)
def _tree(file: str) -> ast.Module | None:
    try:
        return ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
