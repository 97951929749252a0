"""Show what runs, never a copy of it: a function, the diff of two scripts, the versions."""

from __future__ import annotations

import ast
import difflib
import importlib.metadata
import os
import platform
import re
import textwrap
from collections.abc import Sequence
from urllib.parse import quote

from workshop.paths import NOTEBOOKS, SCRIPTS

PACKAGES = ("sagemaker", "sagemaker-training", "tensorflow", "horovod", "torch", "moto")


def show_function(script: str, name: str):
    """A notebook's view of one function or class of a file in scripts/, with a link to its line.

    script: such as "train/train_torch.py". name: "main", "Model", "Model.fit" for a method, or
    "main.step" for a function in another. Raises ValueError for a file or name that
    is not there, and for a method's bare name that several classes have.
    """
    text, line = function_source(script, name)
    return in_markdown("python", text, link(script, line))


def show_diff(old: str, new: str, essential: Sequence[str] = ()):
    """A notebook's view of `diff`: lines with - are only in `old`, lines with + only in `new`.

    Above it are links to both files, and to the reference, which says how to start the second; and
    how many lines changed. essential: parts of added lines. Those lines come first, numbered, and
    the whole diff is folded. Raises ValueError for a part that is not in exactly one added line.
    """
    reference = f"[the reference]({quote(os.path.relpath(NOTEBOOKS / 'reference.ipynb'))})"
    text = diff(old, new)
    added, removed = (re.findall(rf"^[{sign}](?![{sign}]{{2}} ).*", text, re.M) for sign in "+-")
    counted = f"{len(added)} lines added, {len(removed)} removed"
    source = f"From {link(old)} to {link(new)}: {counted}. To copy it and start it: {reference}"
    if not essential:
        return in_markdown("diff", text, source)
    first = []
    for number, part in enumerate(essential, 1):
        lines = [line for line in added if part in line]
        if len(lines) != 1:
            raise ValueError(f"{part!r} is in {len(lines)} added lines of scripts/{new}, not in 1.")
        first.append(f"+{lines[0][1:].strip()}  # ({number})")
    shown = in_markdown("diff", "\n".join(first), source)
    folded = in_markdown("diff", text)
    summary = f"<details><summary>The whole diff: {counted}</summary>"
    shown.data += f"\n\n{summary}\n\n{folded.data}\n\n</details>"
    return shown


def function_source(script: str, name: str) -> tuple[str, int]:
    """The text of one function or class, and the number of its first line; see show_function."""
    text = read(script)
    defined = dict(_definitions(ast.parse(text)))
    paths = [path for path in defined if path == name] or [
        path for path in defined if path.split(".")[-1] == name
    ]
    if not paths:
        raise ValueError(f"scripts/{script} has no function or class {name!r}.")
    if len(paths) > 1:
        raise ValueError(f"scripts/{script} has several {name!r}: name one of {', '.join(paths)}.")
    node = defined[paths[0]]
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    shown = "\n".join(text.splitlines()[first - 1 : node.end_lineno])
    return textwrap.dedent(shown), first


def _definitions(node: ast.AST, prefix: str = ""):
    """(dotted path, node) of every function and class, the nested ones too."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield prefix + child.name, child
            yield from _definitions(child, f"{prefix}{child.name}.")
        else:
            yield from _definitions(child, prefix)


def diff(old: str, new: str, context: int = 1) -> str:
    """The code that two files in scripts/ do not share; their docstrings are left out."""
    lines = difflib.unified_diff(
        body(read(old)), body(read(new)), f"scripts/{old}", f"scripts/{new}", n=context, lineterm=""
    )
    return "\n".join(lines)


def link(script: str, line: int | None = None) -> str:
    """A Markdown link from a notebook to a file in scripts/ and a line in it."""
    path = quote(os.path.relpath(SCRIPTS / script))  # a notebook's process runs in its folder
    if line is None:
        return f"[scripts/{script}]({path})"
    return f"[scripts/{script}, line {line}]({path}#L{line})"


def in_markdown(language: str, text: str, source: str = ""):
    """Text as a notebook's output, coloured as `language`; above it, where it comes from."""
    from IPython.display import Markdown

    return Markdown(f"{source}\n\n```{language}\n{text}\n```".lstrip())


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


def versions() -> str:
    """Python, the system and the packages that matter, in one line."""
    parts = [f"Python {platform.python_version()}", f"{platform.system()} {platform.machine()}"]
    for name in PACKAGES:
        try:
            parts.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            parts.append(f"no {name}")
    return ", ".join(parts)
