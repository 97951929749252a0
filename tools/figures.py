"""`make figures`: the README's pictures, from the lessons that `make run` executed.

A cell tagged `readme` gives its picture. What was taken, from which run, is in
docs/site/figures/run.json; the README's part is made from that file alone.
"""

from __future__ import annotations

import base64
import html
import io
import json
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


def write(executed: Path = BUILD, figures: Path = FIGURES, readme: Path = README) -> dict:
    """Write the pictures, figures/run.json and the README's part; return what run.json has.

    Raises NoRun, and NoFigures where the run lacks a picture: then nothing is written.
    """
    about = last_run(executed)
    record = {key: about[key] for key in ("date", "commit", "machine")}
    record["pictures"] = []
    pngs: list[bytes] = []
    for lesson in chosen(()):
        if not (executed / lesson.name).exists():
            continue
        for alt, png in _pictures(executed / lesson.name):
            name = f"{number(lesson)}.png"
            record["pictures"].append({"file": name, "alt": alt, "lesson": lesson.stem})
            pngs.append(png)
    if len(pngs) != PICTURES:
        raise NoFigures(
            f"{executed} has {len(pngs)} pictures of cells tagged {TAG!r}, not {PICTURES}: "
            "tag the cells in notebooks/*.py, then `make run`."
        )
    shutil.rmtree(figures, ignore_errors=True)
    figures.mkdir(parents=True)
    for picture, png in zip(record["pictures"], pngs, strict=True):
        _smaller(png).save(figures / picture["file"], optimize=True)
    (figures / "run.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    readme.write_text(replaced(readme.read_text(), record))
    return record


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


def replaced(text: str, record: dict) -> str:
    """The README's text with this run's part. Raises NoFigures where the README has no place."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise NoFigures(f"The README lacks the lines {BEGIN} and {END}.")
    return f"{before}{BEGIN}\n{section(record)}{END}{after}"


def section(record: dict) -> str:
    """The README's part: the first picture alone, the others in pairs; date, commit and machine."""
    first, *others = [_linked(picture) for picture in record["pictures"]]
    lines = ["", first, "", "| | |", "|---|---|"]
    lines += [f"| {' | '.join(others[at : at + 2])} |" for at in range(0, len(others), 2)]
    lines += [
        "",
        f"Recorded on {record['date']} at commit {record['commit']}, on {record['machine']}.",
        "All ranks share the cores of that one machine. On AWS each instance brings its own.",
        "",
    ]
    return "\n".join(lines)


def _linked(picture: dict) -> str:
    """A picture that leads to its lesson; without what a table's cell could not hold."""
    alt = re.sub(r"[\[\]|]", " ", " ".join(picture["alt"].split()))
    return f"[![{alt}](docs/site/figures/{picture['file']})](notebooks/{picture['lesson']}.ipynb)"


if __name__ == "__main__":
    try:
        taken = write()
    except (NoRun, NoFigures) as error:
        sys.exit(f"error: {error}")
    size = sum(path.stat().st_size for path in FIGURES.iterdir())
    print(f"{len(taken['pictures'])} pictures, {size / 1000:.0f} kB in all: {FIGURES}")
