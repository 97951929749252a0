"""The site: `make site` builds it from the notebooks that `make run` executed, and runs nothing.

The pages lie as the files do in the repository (notebooks/00_setup.html, scripts/train/x.py),
so a link from a lesson to a file leads to the same place in both.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat

from workshop.course.lessons import chosen, lessons
from workshop.course.pages import read_for_people
from workshop.paths import BUILD, NOTEBOOKS, ROOT, SCRIPTS, TRAIN

TEXTS = ROOT / "site"
SOURCE = BUILD / "site-source"
SITE = BUILD / "site"
RUN = BUILD / "run.json"
PAGES = (
    "README.md",
    "notebooks/glossary.md",
    "notebooks/instructor/guide.md",
    "notebooks/instructor/coverage.md",
    "notebooks/instructor/first_run_on_aws.md",
    "notebooks/instructor/quiz_answers.md",
    "local_sagemaker/README.md",
    "appendix/sdk_v3/README.md",
    "appendix/sdk_v3/sdk_v3.ipynb",
    "tests/matrix/RESULTS.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
)
# What pages link to besides: copied as it is, so that each link leads somewhere.
FILES = ("scripts", "cloudformation", "containers", "tests", "workshop", "local_sagemaker", "bench")
FILES += (
    "data_prep",
    "notebooks",
    "appendix",
    "LICENSE",
    "environment.yml",
    "Makefile",
    "pyproject.toml",
)
NOT_FILES = (".md", ".ipynb", ".pyc")  # pages, or made by a program
HIDDEN = {"results", "injected-parameters"}
LONG_INPUT = 25  # lines; a longer cell is folded


class NoRun(Exception):
    """There are no executed lessons to build the site from; the message says what to do."""


def build(executed: Path = BUILD, source: Path = SOURCE, site: Path = SITE) -> Path:
    """Write the site from the lessons executed in a folder; return its first page.

    Raises NoRun when a lesson was not executed, and CalledProcessError when Sphinx complains:
    a warning is an error.
    """
    missing = [path.stem for path in chosen(()) if not (executed / path.name).exists()]
    if missing:
        raise NoRun(f"{executed} has no executed {', '.join(missing)}: run `make run` first.")
    for folder in (source, site):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(TEXTS, source)
    _write_start(source)
    for lesson in chosen(()):
        _write_lesson(executed / lesson.name, source / "notebooks" / lesson.name)
    for folder in ("exercises", "solutions"):
        for notebook in sorted((NOTEBOOKS / folder).glob("*.ipynb")):
            _copy(notebook, source / notebook.relative_to(ROOT))
    for page in PAGES:
        _copy(ROOT / page, source / page)
    _write_scripts(source / "scripts")
    _write_measured(executed / RUN.name, source / "measured.md")
    _copy_files(source)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    subprocess.run([*command, "-d", source.parent / "site-doctrees", source, site], check=True)
    return site / "index.html"


def _write_start(source: Path) -> None:
    page = source / "index.md"
    text = page.read_text()
    for word, folder in (("LESSONS", ""), ("EXERCISES", "exercises/"), ("SOLUTIONS", "solutions/")):
        found = [f"notebooks/{folder}{one.stem}" for one in (lessons() if folder else chosen(()))]
        text = text.replace(word, "\n".join(found))
    page.write_text(text)


def _write_lesson(executed: Path, page: Path) -> None:
    """A lesson's page: its outputs, without what only programs read."""
    notebook = read_for_people(executed)
    notebook.cells = [
        cell for cell in notebook.cells if not HIDDEN & set(cell.metadata.get("tags", []))
    ]
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        if len(cell.source.splitlines()) > LONG_INPUT or cell.metadata.get("jupyter", {}).get(
            "source_hidden"
        ):
            cell.metadata["tags"] = [*cell.metadata.get("tags", []), "hide-input"]
        for output in cell.outputs:
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
    page.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, page)


def _write_scripts(folder: Path) -> None:
    """A page for each training script, and a list of them."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["# Scripts", "", "What runs on an instance. Each page is the file itself.", ""]
    found = sorted(TRAIN.glob("*.py"))
    for script in found:
        name = script.relative_to(SCRIPTS)
        page = (folder / name).with_suffix(".md")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(
            f"# {script.name}\n\n[The file]({script.name})\n\n"
            f"```{{literalinclude}} {script.name}\n:language: python\n:linenos:\n```\n"
        )
        purpose = _docstring_line(script)
        lines.append(f"- [{script.name}]({name.with_suffix('.md')}): {purpose}")
    lines += ["", "```{toctree}", ":hidden:", ""]
    lines += [str(script.relative_to(SCRIPTS).with_suffix("")) for script in found]
    (folder / "index.md").write_text("\n".join([*lines, "```", ""]))


def _docstring_line(script: Path) -> str:
    return script.read_text().split('"""')[1].strip().splitlines()[0]


def _write_measured(run: Path, page: Path) -> None:
    """How the numbers on the site came about: machine, date, commit, versions, seconds."""
    if not run.exists():
        raise NoRun(f"There is no {run}: run `make run` first.")
    found = json.loads(run.read_text())
    rows = "\n".join(f"| {one['name']} | {one['seconds']:.0f} |" for one in found["lessons"])
    page.write_text(
        f"""# How it was measured

All lessons on this site were executed in one run, by the command `make run`.

| | |
|---|---|
| date | {found["date"]} |
| commit | {found["commit"]} |
| machine | {found["machine"]} |
| target | {found["target"]} |
| versions | {found["versions"]} |

Each number on a page is of one of four kinds, and its sentence says which: measured in this run;
recorded in another (with its machine); computed from a formula; or cited, with its source and the
date on which it was read.

| lesson | seconds |
|---|---|
{rows}
"""
    )


def _copy(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, to)


def _copy_files(folder: Path) -> None:
    """The repository's files that pages link to, as they are."""
    for name in FILES:
        path = ROOT / name
        for one in [path] if path.is_file() else sorted(path.rglob("*")):
            if one.is_file() and one.suffix not in NOT_FILES:
                _copy(one, folder / one.relative_to(ROOT))


if __name__ == "__main__":
    try:
        print(build())
    except NoRun as error:
        sys.exit(f"error: {error}")
    except subprocess.CalledProcessError:
        sys.exit("error: Sphinx complained about the pages; the lines above say where.")
