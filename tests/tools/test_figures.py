"""`make figures`: the README's pictures are those of the recorded run."""

from __future__ import annotations

import base64
import html
import io
import json

import nbformat
import pytest
from PIL import Image

from tools import figures
from workshop.course.lessons import chosen


def png(colour):
    buffer = io.BytesIO()
    Image.new("RGB", (40, 20), colour).save(buffer, "PNG")
    return buffer.getvalue()


def executed(folder, pictures=3):
    """A run: its first lessons have a tagged cell with a picture."""
    folder.mkdir()
    about = {"date": "2026-11-22", "commit": "abc1234", "machine": "a machine, 2 cores"}
    (folder / "run.json").write_text(json.dumps(about))
    for count, lesson in enumerate(chosen(())):
        data = base64.b64encode(png((count, 0, 0))).decode()
        alt = html.escape(f'Picture "{count}"')
        shown = {"text/html": f'<img alt="{alt}" width="40" src="data:image/png;base64,{data}">'}
        outputs = [nbformat.v4.new_output("display_data", data=shown)]
        tags = ["readme"] if count < pictures else ["figure"]
        cell = nbformat.v4.new_code_cell("", outputs=outputs, metadata={"tags": tags})
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / lesson.name)
    return folder


@pytest.fixture
def readme(tmp_path):
    path = tmp_path / "README.md"
    path.write_text(f"before\n{figures.BEGIN}\nold\n{figures.END}\nafter\n")
    return path


def test_the_readme_gets_the_runs_pictures(tmp_path, readme):
    to = tmp_path / "figures"
    to.mkdir()
    (to / "old.png").touch()
    record = figures.write(executed(tmp_path / "run"), to, readme)
    assert json.loads((to / "run.json").read_text()) == record
    files = [picture["file"] for picture in record["pictures"]]
    assert sorted(path.name for path in to.iterdir()) == sorted(["run.json", *files])
    reds = [Image.open(to / name).convert("RGB").getpixel((0, 0))[0] for name in files]
    assert reds == [0, 1, 2], "each lesson's own picture"
    text = readme.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    second = record["pictures"][1]
    picture = (
        f'[![Picture "1"](docs/site/figures/{second["file"]})](notebooks/{second["lesson"]}.ipynb)'
    )
    assert picture in text
    first = next(line for line in text.splitlines() if line.startswith("[!["))
    assert record["pictures"][0]["file"] in first and "|" not in first, "alone on its line"
    assert "Recorded on 2026-11-22 at commit abc1234, on a machine, 2 cores." in text
    assert figures.replaced(text, record) == text, "a second time changes nothing"


def test_a_run_that_lacks_a_picture_changes_nothing(tmp_path, readme):
    before = readme.read_text()
    with pytest.raises(figures.NoFigures, match="1 pictures of cells tagged 'readme', not 3"):
        figures.write(executed(tmp_path / "run", pictures=1), tmp_path / "figures", readme)
    assert readme.read_text() == before and not (tmp_path / "figures").exists()


def test_without_a_run_or_a_place_it_says_so(tmp_path, readme):
    with pytest.raises(figures.NoRun, match="run `make run` first"):
        figures.write(tmp_path, tmp_path / "figures", readme)
    with pytest.raises(figures.NoFigures, match="The README lacks the lines"):
        figures.replaced("no marks", {})


def test_the_readme_has_what_was_recorded():
    """The committed README, its pictures and the recorded run."""
    record = json.loads((figures.FIGURES / "run.json").read_text())
    text = figures.README.read_text()
    assert figures.replaced(text, record) == text, "run `make figures`"
    assert len(record["pictures"]) == figures.PICTURES
    sizes = [(figures.FIGURES / picture["file"]).stat().st_size for picture in record["pictures"]]
    assert sum(sizes) < 400_000
