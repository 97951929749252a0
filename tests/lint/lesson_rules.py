"""What a reader of a notebook may rely on."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from course_text import (
    NOTEBOOKS,
    REFERENCE,
    ROOT,
    SDK_V3,
    Cell,
    Finding,
    cells,
    lessons,
    matches,
    read,
)

from workshop.lesson import quiz

LONGEST_CELL = 25
FORBIDDEN = re.compile(r"%%writefile|^[ \t]*[!%]\s*(pip|conda|cat)\b|\bpip install\b", re.MULTILINE)
PRIVATE = re.compile(r"(?<!\d)\d{12}(?!\d)|/home/|/root/")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
IMAGE = re.compile(r"<img\b[^>]*>")
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
FORMULA = re.compile(r"(?<!\\)\$[^$]+?(?<!\\)\$|\\\\[(\[]|\\begin\{")
HEADER = ("**Time:**", "**Where it runs:**", "**Cost on AWS:**")


def one_parameters_cell(path: Path, text: str) -> Iterator[Finding]:
    """papermill injects values after this cell: what it derives would keep the old ones."""
    tagged = [cell for cell in cells(text) if "parameters" in cell.tags]
    if len(tagged) != 1:
        yield Finding(path, 1, f"{len(tagged)} cells are tagged parameters; one is needed")
        return
    (cell,) = tagged
    names = set()
    for statement in ast.parse(cell.text).body:
        line = cell.line + statement.lineno - 1
        try:
            ast.literal_eval(statement.value)
            names |= {target.id for target in statement.targets}
        except (AttributeError, ValueError):
            yield Finding(path, line, "the parameters cell has more than NAME = plain literal")
    for name in sorted({"target", "seat"} - names):
        yield Finding(path, cell.line, f"no parameter {name}")


def short_cells(path: Path, text: str) -> Iterator[Finding]:
    """Longer code belongs in a module."""
    for cell in cells(text):
        length = sum(bool(line.strip()) for line in cell.text.splitlines())
        if cell.kind == "code" and length > LONGEST_CELL:
            yield Finding(path, cell.line, f"{length} lines of code; at most {LONGEST_CELL}")


def assertions_explain_themselves(path: Path, text: str) -> Iterator[Finding]:
    """A learner who fails one reads what to correct."""
    for cell in cells(text):
        if cell.kind == "code":
            for node in ast.walk(ast.parse(cell.text)):
                if isinstance(node, ast.Assert) and node.msg is None:
                    line = cell.line + node.lineno - 1
                    yield Finding(path, line, "an assert without a message that says what to do")


def header(path: Path, text: str) -> Iterator[Finding]:
    """Minutes, place and cost are said before anything runs."""
    first = cells(text)[0]
    if not first.text.startswith(f"# {path.stem[:2]} · "):
        yield Finding(path, first.line, f"the title does not begin with '# {path.stem[:2]} · '")
    for part in HEADER:
        if part not in first.text:
            yield Finding(path, first.line, f"the header lacks {part}")


def nothing_private_or_installed(path: Path, text: str) -> Iterator[Finding]:
    """No account, no path of one machine; nothing written or installed behind one's back."""
    for line, match in matches(PRIVATE, text):
        yield Finding(path, line, f"an account number or a path of one machine: {match[0]}")
    for cell in cells(text):
        if cell.kind == "code":
            for line, match in matches(FORBIDDEN, cell.text, cell.line):
                yield Finding(path, line, f"a cell writes or installs: {match[0].strip()}")


def no_formulas(path: Path, text: str) -> Iterator[Finding]:
    """The pages have no MathJax, and JupyterLab makes a formula of "$5 to $6"."""
    for cell in markdown(text):
        blanked = CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), cell.text)
        for line, match in matches(FORMULA, blanked, cell.line):
            yield Finding(path, line, rf"write in words, as code, or with \$: {match[0]!r}")


def quiz_and_exercises(path: Path, text: str) -> Iterator[Finding]:
    """The lesson leads to its exercises and asks its questions."""
    if f"(exercises/{path.stem}.ipynb)" not in text:
        yield Finding(path, 1, f"no link to exercises/{path.stem}.ipynb")
    if f'workshop.quiz("{path.stem[:2]}")' not in text:
        yield Finding(path, 1, f'no cell workshop.quiz("{path.stem[:2]}")')


def folded(path: Path, text: str) -> Iterator[Finding]:
    """What is saved and asserted for the tests is out of the reader's sight, and no answer is."""
    for line, _ in matches(r'(?m)^# %%(?!.*"source_hidden": true).*"results"', text):
        yield Finding(path, line, 'a cell tagged results without jupyter={"source_hidden": true}')
    guesses = compared = 0
    for cell in cells(text):
        if cell.kind != "code":
            continue
        nodes = list(ast.walk(ast.parse(cell.text)))
        calls = [ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)]
        shown = [call for call in calls if call.split(".")[-1] == "compare"]
        guesses, compared = guesses + calls.count("workshop.guess"), compared + len(shown)
        saves = "workshop.save_results" in calls or any(
            isinstance(one, ast.Assert) for one in nodes
        )
        if saves and "results" not in cell.tags:
            yield Finding(
                path, cell.line, "it saves or asserts: put that into a cell tagged results"
            )
        if shown and "results" in cell.tags:
            yield Finding(path, cell.line, "the answer to a guess is in a folded cell")
    if not 0 < guesses <= compared:
        yield Finding(path, 1, f"{guesses} guesses, and {compared} comparisons with what was right")


def links_and_images(path: Path, text: str) -> Iterator[Finding]:
    """Links resolve; an image says what it shows."""
    parts = [(cell.line, cell.text) for cell in markdown(text)]
    for first, part in parts if path.suffix == ".py" else [(1, text)]:
        blanked = CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), part)
        for line, match in matches(LINK, blanked, first):
            image, label, target = match.groups()
            if image and not label.strip():
                yield Finding(path, line, f"the image {target} has no alternative text")
            target = target.split("#")[0]
            outside = target.startswith(("https://", "http://", "mailto:", "data:"))
            if target and not outside and not (path.parent / target).exists():
                yield Finding(path, line, f"the link to {target} leads nowhere")
        for line, match in matches(IMAGE, blanked, first):
            if not re.search(r"""alt=["'][^"']""", match[0]):
                yield Finding(path, line, f"an image without alternative text: {match[0]}")


def quiz_lengths(folder: Path) -> Iterator[Finding]:
    """The right choice must not stick out: it is the longest of its question in a third at most."""
    questions, longest = 0, []
    for number in quiz.lessons(folder):
        for question in quiz.load(number, folder):
            questions += 1
            lengths = [len(choice) for choice in question.choices]
            if lengths[question.answer] == max(lengths):
                longest.append(number)
    if 3 * len(longest) > questions:
        counts = ", ".join(f"{one}: {longest.count(one)}" for one in sorted(set(longest)))
        said = f"the right choice is the longest in {len(longest)} of {questions} questions"
        yield Finding(folder, 1, f"{said} ({counts}); at most a third may be")


def no_outputs(path: Path, text: str) -> Iterator[Finding]:
    """What a notebook shows is of the run that shows it."""
    for number, cell in enumerate(json.loads(text)["cells"], start=1):
        if cell.get("outputs") or cell.get("execution_count") is not None:
            yield Finding(path, 1, f"cell {number} was committed with its outputs")


def markdown(text: str) -> Iterable[Cell]:
    return (cell for cell in cells(text) if cell.kind == "markdown")


Rule = Callable[[Path, str], Iterator[Finding]]
OF_ALL: tuple[Rule, ...] = (one_parameters_cell, short_cells, assertions_explain_themselves)
OF_LESSONS: tuple[Rule, ...] = (*OF_ALL, header, quiz_and_exercises, folded)
OF_NOTEBOOKS: tuple[Rule, ...] = (nothing_private_or_installed, no_formulas, links_and_images)


def findings() -> Iterator[Finding]:
    """What is wrong in the lessons, their solutions, and the other pages of the course."""
    if not lessons():
        yield Finding(NOTEBOOKS, 1, "there are no lessons")
    for path in lessons().values():
        for rule in (*OF_LESSONS, *OF_NOTEBOOKS):
            yield from rule(path, read(path))
    for rule in (*OF_ALL, *OF_NOTEBOOKS):  # the reference teaches nothing: no quiz, no exercises
        yield from rule(REFERENCE, read(REFERENCE))
    for path in sorted(NOTEBOOKS.glob("solutions/*.py")):
        for rule in OF_NOTEBOOKS:
            yield from rule(path, read(path))
    for rule in (short_cells, assertions_explain_themselves, *OF_NOTEBOOKS):
        yield from rule(SDK_V3, read(SDK_V3))
    docs = ROOT / "docs"  # in docs/site links lead where the pages lie on the site
    pages = [ROOT / "README.md", *sorted(docs.glob("*.md")), *sorted(docs.glob("teaching/*.md"))]
    pages += sorted(NOTEBOOKS.rglob("*.md"))
    for path in pages:
        yield from links_and_images(path, read(path))
    yield from quiz_lengths(NOTEBOOKS / "quiz")
    for path in [SDK_V3.with_suffix(".ipynb"), *sorted(NOTEBOOKS.rglob("*.ipynb"))]:
        yield from no_outputs(path, read(path))
