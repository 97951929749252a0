"""Show the scripts that run, not copies of them: a function, or the diff of two scripts."""

from __future__ import annotations

import ast
import difflib

from workshop.paths import SCRIPTS


def function_source(script: str, name: str) -> str:
    """The text of one function or class of a file in scripts/. Raises ValueError."""
    text = _read(script)
    for node in ast.walk(ast.parse(text)):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        if isinstance(node, kinds) and node.name == name:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    raise ValueError(f"scripts/{script} has no function or class {name!r}.")


def diff(old: str, new: str, context: int = 1) -> str:
    """The code that two files in scripts/ do not share; their docstrings are left out."""
    lines = difflib.unified_diff(
        _body(old), _body(new), f"scripts/{old}", f"scripts/{new}", n=context, lineterm=""
    )
    return "\n".join(lines)


def show_function(script: str, name: str):
    """A notebook's view of `function_source`."""
    return _markdown("python", function_source(script, name))


def show_diff(old: str, new: str):
    """A notebook's view of `diff`: lines with - are only in `old`, lines with + only in `new`."""
    return _markdown("diff", diff(old, new))


def _markdown(language: str, text: str):
    from IPython.display import Markdown

    return Markdown(f"```{language}\n{text}\n```")


def _read(script: str) -> str:
    path = SCRIPTS / script
    if not path.is_file():
        raise ValueError(f"There is no scripts/{script}.")
    return path.read_text()


def _body(script: str) -> list[str]:
    text = _read(script)
    first = ast.parse(text).body[0]
    has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return text.splitlines()[first.end_lineno if has_docstring else 0 :]
