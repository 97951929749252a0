"""The site: `make site` builds it from the notebooks that `make run` executed, and runs nothing.

The pages lie as the files do in the repository (notebooks/00_setup.html, scripts/train/x.py),
so a link from a lesson to a file leads to the same place in both.
"""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import jinja2
import nbformat

from tools.site_links import broken
from workshop import failures
from workshop.course.lessons import REFERENCE, NoRun, chosen, last_run, lessons, number
from workshop.course.pages import read_for_people
from workshop.paths import BUILD, NOTEBOOKS, ROOT, SCRIPTS, TEACHING

TEXTS = ROOT / "docs" / "site"
LANGUAGES = ("en", "ko", "ja", "zh_CN")  # docs/site/locale has catalogs of some pages
TEMPLATES = Path(__file__).with_name("templates") / "site"
SOURCE = BUILD / "site-source"
SITE = BUILD / "site"
PAGES = (
    "README.md",
    "docs/setup.md",
    "docs/aws.md",
    "docs/troubleshooting.md",
    "docs/measurements.md",
    "notebooks/glossary.md",
    "local-sagemaker/README.md",
    "local-sagemaker/OPERATIONS.md",
    "notebooks/capstone/README.md",
    "notebooks/project/README.md",
    *(f"notebooks/project/part{part}.md" for part in range(1, 6)),
    "notebooks/sdk_v3/README.md",
    "notebooks/sdk_v3/results.md",
    "notebooks/sdk_v3/sdk_v3.ipynb",
    "tests/scripts/matrix/RESULTS.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
)
# What pages link to besides: copied as it is, so that each link leads somewhere.
FOLDERS = [
    "scripts",
    "cloudformation",
    "tests",
    "workshop",
    "local-sagemaker",
    "tools",
    "data_prep",
    "notebooks",
]
FILES = [*FOLDERS, "LICENSE", "environment.yml", "Makefile", "pyproject.toml"]
NOT_FILES = shutil.ignore_patterns("*.md", "*.ipynb", "__pycache__")  # pages, or made by a program
# What outputs link to, in scripts/ and here, has a page of its own; lines have no places there.
RECIPES = ROOT / "notebooks/sdk_v3/recipes.py"
SCRIPT_LINK = re.compile(r"((?:\.\./scripts|sdk_v3)/[\w/]+)\.py(?:#L\d+)?(?=[\")])")
NOTEBOOK_LINK = re.compile(r"((?:\]\(|href=\")[\w/]+)\.ipynb(?=[\")])")
HIDDEN = {"results", "injected-parameters"}
RECORDED = """```{note}
This page is a recorded run: every output is what the cell above it gave. You can follow it without
running anything. Where the lesson asks for a guess, write yours down before you read on; the table
that follows shows what was measured, and no guess. "This machine" is the one that
[How it was measured](../measured.md) names.
```"""
# The heading of solutions is that of the exercises made of them: in a search they look alike.
SOLUTIONS = {"Exercises": "Solutions", "exercises": "solutions"}
EXERCISES = re.compile("|".join(SOLUTIONS))
LONG_INPUT = 25  # lines; a longer cell is folded


class BrokenLinks(Exception):
    """Links of the site lead nowhere; the message lists them."""


def build(
    executed: Path = BUILD,
    source: Path = SOURCE,
    site: Path = SITE,
    languages: Iterable[str] = LANGUAGES,
) -> Path:
    """Write the site from the lessons executed in a folder; return its first page.

    languages: of LANGUAGES. English is in `site` itself, another language in a folder
    of its name there.
    Raises NoRun when a lesson was not executed; CalledProcessError when Sphinx complains, since a
    warning is an error; and BrokenLinks.
    """
    missing = [path.stem for path in chosen(()) if not (executed / path.name).exists()]
    if missing:
        raise NoRun(f"{executed} has no executed {', '.join(missing)}: run `make run` first.")
    for folder in (source, site):
        shutil.rmtree(folder, ignore_errors=True)
    _write_source(executed, source)
    names = ",".join(languages)
    for language in names.split(","):
        command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
        command += ["-D", f"language={language}", "-A", f"languages={names}"]
        command += ["-d", str(source.parent / f"{source.name}-{language}")]
        out = site if language == "en" else site / language
        subprocess.run([*command, source, out], check=True)
    if wrong := list(broken(site)):
        raise BrokenLinks("\n".join(["Links that lead nowhere:", *wrong]))
    return site / "index.html"


def _write_source(executed: Path, source: Path) -> None:
    """Write what Sphinx reads: the repository's texts, notebooks and files, at their places."""
    shutil.copytree(TEXTS, source)
    shutil.copytree(
        TEXTS / "figures", source / "docs" / "site" / "figures"
    )  # where the README looks
    for lesson in chosen(()):
        _write_lesson(executed / lesson.name, source / "notebooks" / lesson.name)
    for folder in ("exercises", "solutions"):
        for notebook in sorted((NOTEBOOKS / folder).glob("*.ipynb")):
            _copy(notebook, source / notebook.relative_to(ROOT))
    for page in (source / "notebooks" / "solutions").glob("*.ipynb"):
        page.write_text(EXERCISES.sub(lambda word: SOLUTIONS[word[0]], page.read_text(), count=1))
    for page in [*(ROOT / name for name in PAGES), *TEACHING.glob("*.md")]:
        _copy(page, source / page.relative_to(ROOT))
    _write_scripts(source / "scripts")
    _write_listing(source / RECIPES.relative_to(ROOT))
    names = {number(path): path.stem for path in lessons()}
    guide = _rendered("field_guide.md.j2", failures=failures.ALL.values(), lessons=names)
    (source / "field_guide.md").write_text(guide)
    (source / "measured.md").write_text(_rendered("measured.md.j2", **last_run(executed)))
    _copy_files(source)


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
        if cell.source.startswith("guess.compare("):  # the reader's own guess comes first
            cell.metadata["tags"] = [*cell.metadata.get("tags", []), "hide-output"]
        for output in cell.outputs:
            data = output.get("data", {})
            data.pop("application/vnd.jupyter.widget-view+json", None)
            for kind in {"text/html", "text/markdown"} & data.keys():
                text = SCRIPT_LINK.sub(r"\1.html", "".join(data[kind]))
                data[kind] = NOTEBOOK_LINK.sub(r"\1.html", text)
    notebook.cells.insert(1, nbformat.v4.new_markdown_cell(RECORDED))
    notebook.cells.append(nbformat.v4.new_markdown_cell(_files_of(executed.stem)))
    page.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, page)


def _files_of(name: str) -> str:
    """The last lines of a lesson's page: its notebook, its source, and its exercises."""
    links = [
        f'<a href="../_sources/notebooks/{name}.ipynb" download>the notebook, as it ran here</a>',
        f"[its source]({name}.py)",
    ]
    if name != REFERENCE:
        links.append(f"[its exercises](exercises/{name}.ipynb)")
    return f"---\n\nFiles of this page: {', '.join(links)}."


def _scripts() -> list[Path]:
    """Every script, without the empty files that make a folder a package."""
    paths = sorted(SCRIPTS.rglob("*.py"))
    return [path for path in paths if path.name != "__init__.py" and path.read_text().strip()]


def _write_scripts(folder: Path) -> None:
    """A page for each script, and a list of them, folder by folder."""
    lines = ["# Scripts", "", "What runs on an instance. Each page is the file itself.", ""]
    heading = None
    for script in _scripts():
        name = script.relative_to(SCRIPTS)
        _write_listing(folder / name)
        if name.parent != heading:
            heading = name.parent
            lines += ["", f"## scripts/{heading}", ""]
        lines.append(f"- [{script.name}]({name.with_suffix('.md')}): {_docstring_line(script)}")
    (folder / "index.md").write_text("\n".join([*lines, ""]))


def _write_listing(script: Path) -> None:
    """A page that shows a file of Python; the file itself lies beside the page."""
    script.parent.mkdir(parents=True, exist_ok=True)
    script.with_suffix(".md").write_text(_rendered("script.md.j2", name=script.name))


def _rendered(template: str, **values) -> str:
    """A page of a template beside this file; its values are Markdown."""
    return jinja2.Template((TEMPLATES / template).read_text(encoding="utf-8")).render(values)


def _docstring_line(script: Path) -> str:
    docstring = ast.get_docstring(ast.parse(script.read_text())) or "no description"
    return docstring.splitlines()[0].strip()


def _copy(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, to)


def _copy_files(folder: Path) -> None:
    """The repository's files that pages link to, as they are."""
    for name in FILES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=NOT_FILES, dirs_exist_ok=True)
        else:
            shutil.copy(ROOT / name, folder)


if __name__ == "__main__":
    try:
        print(build())
    except (NoRun, BrokenLinks) as error:
        sys.exit(f"error: {error}")
    except subprocess.CalledProcessError:
        sys.exit("error: Sphinx complained about the pages; the lines above say where.")
