"""`make figures`: the README's pictures, from the lessons that `make run` executed.

A cell tagged `readme` gives its picture.
"""

from __future__ import annotations

import base64
import html
import io
import re
import shutil
import sys
from pathlib import Path

import nbformat
from PIL import Image

from workshop.course.lessons import NoRun, chosen, last_run, number
from workshop.paths import BUILD, ROOT

FIGURES = ROOT / "docs" / "site" / "figures"
README = ROOT / "README.md"
BEGIN, END = "<!-- made by `make figures` -->", "<!-- end of what `make figures` makes -->"
IMAGE = re.compile(r'<img alt="([^"]*)" [^>]*src="data:image/png;base64,([^"]+)"')
TAG, PICTURES = "readme", 3


class NoFigures(Exception):
    """The executed lessons lack something; the message says what."""


def write(executed: Path = BUILD, figures: Path = FIGURES, readme: Path = README) -> list[Path]:
    """Write the pictures and the README's part; return the pictures' places.

    Raises NoRun, and NoFigures where the run lacks a picture: then nothing is written.
    """
    about, pictures = last_run(executed), []
    for lesson in chosen(()):
        if (executed / lesson.name).exists():
            pictures += [(lesson, *picture) for picture in _pictures(executed / lesson.name)]
    if len(pictures) != PICTURES:
        raise NoFigures(
            f"{executed} has {len(pictures)} pictures of cells tagged {TAG!r}, not {PICTURES}: "
            "tag the cells in notebooks/*.py, then `make run`."
        )
    shutil.rmtree(figures, ignore_errors=True)
    figures.mkdir(parents=True)
    paths, linked = [], []
    for lesson, alt, png in pictures:
        paths.append(figures / f"{number(lesson)}.png")
        _smaller(png).save(paths[-1], optimize=True)
        linked.append(_linked(alt, paths[-1].name, lesson.stem))
    readme.write_text(replaced(readme.read_text(), section(linked, about)))
    return paths


def _pictures(executed: Path) -> list[tuple[str, bytes]]:
    """(alternative text, PNG) of each tagged cell's first picture."""
    pictures = []
    for cell in nbformat.read(executed, as_version=4).cells:
        if TAG in cell.metadata.get("tags", []):
            shown = "".join(output.get("data", {}).get("text/html", "") for output in cell.outputs)
            if picture := IMAGE.search(shown):
                pictures.append((html.unescape(picture[1]), base64.b64decode(picture[2])))
    return pictures


def _smaller(png: bytes) -> Image.Image:
    """With 64 colours: plots lose nothing that one sees, and most of their bytes."""
    return Image.open(io.BytesIO(png)).convert("RGB").quantize(64)


def replaced(text: str, part: str) -> str:
    """The README's text with this part in its place."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{part}{END}{rest.partition(END)[2]}"


def section(linked: list[str], about: dict) -> str:
    """The README's part: the first picture alone, the others in pairs; date, commit and machine."""
    first, *others = linked
    lines = ["", first, "", "| | |", "|---|---|"]
    lines += [f"| {' | '.join(others[at : at + 2])} |" for at in range(0, len(others), 2)]
    lines += [
        "",
        f"Recorded on {about['date']} at commit {about['commit']}, on {about['machine']}.",
        "All ranks share the cores of that one machine. On AWS each instance brings its own.",
        "",
    ]
    return "\n".join(lines)


def _linked(alt: str, file: str, lesson: str) -> str:
    """A picture that leads to its lesson; without what a table's cell could not hold."""
    alt = re.sub(r"[\[\]|]", " ", " ".join(alt.split()))
    return f"[![{alt}](docs/site/figures/{file})](notebooks/{lesson}.ipynb)"


if __name__ == "__main__":
    try:
        taken = write()
    except (NoRun, NoFigures) as error:
        sys.exit(f"error: {error}")
    print(*taken, sep="\n")
