"""What a reader of a notebook may rely on."""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from course_text import (
    NOTEBOOKS,
    REFERENCE,
    ROOT,
    SDK_V3,
    Cell,
    Finding,
    blanked,
    cells,
    lessons,
    matches,
    read,
)

from workshop.lesson import quiz

MAX_CELL_LINES = 25
FORBIDDEN = re.compile(r"%%writefile|^[ \t]*[!%]\s*(pip|conda|cat)\b|\bpip install\b", re.MULTILINE)
PRIVATE = re.compile(r"(?<!\d)\d{12}(?!\d)|/home/|/root/")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
IMAGE = re.compile(r"<img\b(?![^>]*alt=[\"'][^\"'])[^>]*>")
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
FORMULA = re.compile(r"(?<!\\)\$[^$]+?(?<!\\)\$|\\\\[(\[]|\\begin\{")
HEADER = ("**Time:**", "**Where it runs:**", "**Cost on AWS:**")
OUTSIDE = ("https://", "http://", "mailto:", "data:")


def code(text: str) -> Iterator[tuple[Cell, list[ast.AST]]]:
    """The code cells, each with all nodes of its tree."""
    for cell in cells(text):
        if cell.kind == "code":
            yield cell, list(ast.walk(ast.parse(cell.text)))


def one_parameters_cell(path: Path, text: str) -> Iterator[Finding]:
    """papermill injects values after this cell: what it derives would keep the old ones."""
    tagged = [cell for cell in cells(text) if "parameters" in cell.tags]
    if len(tagged) != 1:
        yield Finding(path, 1, f"{len(tagged)} cells are tagged parameters; one is needed")
        return
    (cell,), names = tagged, set()
    for statement in ast.parse(cell.text).body:
        try:
            ast.literal_eval(statement.value)
            names |= {target.id for target in statement.targets}
        except (AttributeError, ValueError):
            line = cell.line + statement.lineno - 1
            yield Finding(path, line, "the parameters cell has more than NAME = plain literal")
    for name in sorted({"target", "seat"} - names):
        yield Finding(path, cell.line, f"no parameter {name}")


def cells_are_short_and_asserts_explain(path: Path, text: str) -> Iterator[Finding]:
    """Longer code belongs in a module. A learner who fails an assert reads what to correct."""
    for cell, nodes in code(text):
        length = sum(bool(line.strip()) for line in cell.text.splitlines())
        if length > MAX_CELL_LINES:
            yield Finding(path, cell.line, f"{length} lines of code; at most {MAX_CELL_LINES}")
        for node in nodes:
            if isinstance(node, ast.Assert) and node.msg is None:
                line = cell.line + node.lineno - 1
                yield Finding(path, line, "an assert without a message that says what to do")


def header_quiz_and_exercises(path: Path, text: str) -> Iterator[Finding]:
    """Minutes, place and cost are said before anything runs; exercises and quiz are linked."""
    first, number = cells(text)[0], path.stem[:2]
    if not first.text.startswith(f"# {number} · "):
        yield Finding(path, first.line, f"the title does not begin with '# {number} · '")
    for part in HEADER:
        if part not in first.text:
            yield Finding(path, first.line, f"the header lacks {part}")
    for part in (f"(exercises/{path.stem}.ipynb)", f'workshop.quiz("{number}")'):
        if part not in text:
            yield Finding(path, 1, f"nowhere is {part}")


def folded(path: Path, text: str) -> Iterator[Finding]:
    """What is saved and asserted for the tests is out of the reader's sight, and no answer is."""
    for line, _ in matches(r'(?m)^# %%(?!.*"source_hidden": true).*"results"', text):
        yield Finding(path, line, 'a cell tagged results without jupyter={"source_hidden": true}')
    guesses = comparisons = 0
    for cell, nodes in code(text):
        calls = [ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)]
        compares = sum(call.split(".")[-1] == "compare" for call in calls)
        guesses, comparisons = guesses + calls.count("workshop.guess"), comparisons + compares
        asserts = any(isinstance(node, ast.Assert) for node in nodes)
        if (asserts or "workshop.save_results" in calls) and "results" not in cell.tags:
            message = "it saves or asserts: put that into a cell tagged results"
            yield Finding(path, cell.line, message)
        if compares and "results" in cell.tags:
            yield Finding(path, cell.line, "the answer to a guess is in a folded cell")
    if not 0 < guesses <= comparisons:
        yield Finding(path, 1, f"{guesses} guesses, {comparisons} comparisons with what was right")


def nothing_private_or_installed(path: Path, text: str) -> Iterator[Finding]:
    """No account, no path of one machine; nothing written or installed behind one's back."""
    for line, match in matches(PRIVATE, text):
        yield Finding(path, line, f"an account number or a path of one machine: {match[0]}")
    for cell in (cell for cell in cells(text) if cell.kind == "code"):
        for line, match in matches(FORBIDDEN, cell.text, cell.line):
            yield Finding(path, line, f"a cell writes or installs: {match[0].strip()}")


def links_images_formulas(path: Path, text: str) -> Iterator[Finding]:
    """Links resolve, images have a text. Formulas: pages have no MathJax, JupyterLab has."""
    parts = [(cell.line, cell.text) for cell in cells(text) if cell.kind == "markdown"]
    for first, part in parts if path.suffix == ".py" else [(1, text)]:
        prose = blanked(CODE, part)
        for line, match in matches(LINK, prose, first):
            image, label, target = match.groups()
            if image and not label.strip():
                yield Finding(path, line, f"the image {target} has no alternative text")
            target = target.split("#")[0]
            if target and not target.startswith(OUTSIDE) and not (path.parent / target).exists():
                yield Finding(path, line, f"the link to {target} leads nowhere")
        for line, match in matches(IMAGE, prose, first):
            yield Finding(path, line, f"an image without alternative text: {match[0]}")
        if path.suffix == ".py":
            for line, match in matches(FORMULA, prose, first):
                yield Finding(path, line, rf"write in words, as code, or with \$: {match[0]!r}")


def quiz_lengths(folder: Path) -> Iterator[Finding]:
    """The right choice must not stick out: it is the longest of its question in a third at most."""
    questions = [question for n in quiz.lessons(folder) for question in quiz.load(n, folder)]
    longest = sum(
        len(question.choices[question.answer]) == max(map(len, question.choices))
        for question in questions
    )
    if 3 * longest > len(questions):
        message = f"the right choice is the longest in {longest} of {len(questions)} questions"
        yield Finding(folder, 1, f"{message}; at most a third may be")


def outputs(path: Path, text: str) -> Iterator[Finding]:
    """What a notebook shows is of the run that shows it, or the same in every run."""
    for number, cell in enumerate(json.loads(text)["cells"], start=1):
        if "deterministic" in cell.get("metadata", {}).get("tags", []):
            if not cell["outputs"]:
                yield Finding(path, 1, f"cell {number} is deterministic: record what it shows")
        elif cell.get("outputs") or cell.get("execution_count") is not None:
            yield Finding(path, 1, f"cell {number} was committed with its outputs")


OF_NOTEBOOKS = (nothing_private_or_installed, links_images_formulas)
OF_REFERENCE = (*OF_NOTEBOOKS, one_parameters_cell, cells_are_short_and_asserts_explain)
OF_LESSONS = (*OF_REFERENCE, header_quiz_and_exercises, folded)


def findings() -> Iterator[Finding]:
    """What is wrong in the lessons, their solutions, and the other pages of the course."""
    docs = ROOT / "docs"  # in docs/site links lead where the pages lie on the site
    pages = [*ROOT.glob("*.md"), *docs.glob("*.md"), *docs.glob("teaching/*.md")]
    rules = {path: (links_images_formulas,) for path in [*pages, *NOTEBOOKS.rglob("*.md")]}
    rules |= dict.fromkeys(lessons().values(), OF_LESSONS) | {REFERENCE: OF_REFERENCE}
    rules |= dict.fromkeys(NOTEBOOKS.glob("solutions/*.py"), OF_NOTEBOOKS)
    rules |= {SDK_V3: (*OF_NOTEBOOKS, cells_are_short_and_asserts_explain)}
    rules |= dict.fromkeys(NOTEBOOKS.rglob("*.ipynb"), (outputs,))
    for path, rules_of_path in rules.items():
        for rule in rules_of_path:
            yield from rule(path, read(path))
    yield from quiz_lengths(NOTEBOOKS / "quiz")
