"""Show the scripts that run, not copies of them: a function, or the diff of two scripts."""

from __future__ import annotations

import ast
import difflib

from workshop.paths import SCRIPTS


def function_source(script: str, name: str) -> str:
    """The text of one function or class of a file in scripts/. Raises ValueError."""
    text = read(script)
    for node in ast.walk(ast.parse(text)):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        if isinstance(node, kinds) and node.name == name:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    raise ValueError(f"scripts/{script} has no function or class {name!r}.")


def diff(old: str, new: str, context: int = 1) -> str:
    """The code that two files in scripts/ do not share; their docstrings are left out."""
    lines = difflib.unified_diff(
        body(read(old)), body(read(new)), f"scripts/{old}", f"scripts/{new}", n=context, lineterm=""
    )
    return "\n".join(lines)


def show_function(script: str, name: str):
    """A notebook's view of `function_source`."""
    return in_markdown("python", function_source(script, name))


def show_diff(old: str, new: str):
    """A notebook's view of `diff`: lines with - are only in `old`, lines with + only in `new`."""
    return in_markdown("diff", diff(old, new))


def in_markdown(language: str, text: str):
    """Text as a notebook's output, coloured as `language`."""
    from IPython.display import Markdown

    return Markdown(f"```{language}\n{text}\n```")


def read(script: str) -> str:
    """The text of a file in scripts/. Raises ValueError if there is none."""
    path = SCRIPTS / script
    if not path.is_file():
        raise ValueError(f"There is no scripts/{script}.")
    return path.read_text()


def body(text: str) -> list[str]:
    """A script's lines below its docstring."""
    first = ast.parse(text).body[0]
    has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return text.splitlines()[first.end_lineno if has_docstring else 0 :]
