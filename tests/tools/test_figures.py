"""`make figures`: the README's pictures are those of the recorded run."""

import base64
import html
import io
import json

import nbformat
import pytest
from PIL import Image

from tools import figures
from workshop.course.lessons import chosen


def executed(folder, pictures=3):
    """A run: its first lessons have a tagged cell with a picture."""
    folder.mkdir()
    about = {"date": "2026-11-22", "commit": "abc1234", "machine": "a machine, 2 cores"}
    (folder / "run.json").write_text(json.dumps(about))
    for count, lesson in enumerate(chosen(())):
        Image.new("RGB", (40, 20), (count, 0, 0)).save(buffer := io.BytesIO(), "PNG")
        data = base64.b64encode(buffer.getvalue()).decode()
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
    paths = figures.write(executed(tmp_path / "run"), to, readme)
    assert sorted(to.iterdir()) == sorted(paths)
    reds = [Image.open(path).convert("RGB").getpixel((0, 0))[0] for path in paths]
    assert reds == [0, 1, 2], "each lesson's own picture"
    text = readme.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    lessons = [lesson.stem for lesson in chosen(())]
    assert f'[![Picture "1"](docs/site/figures/01.png)](notebooks/{lessons[1]}.ipynb)' in text
    first = next(line for line in text.splitlines() if line.startswith("[!["))
    assert "00.png" in first and "|" not in first, "alone on its line"
    assert "Recorded on 2026-11-22 at commit abc1234, on a machine, 2 cores." in text


def test_a_run_that_lacks_a_picture_changes_nothing(tmp_path, readme):
    before = readme.read_text()
    with pytest.raises(figures.NoFigures, match="1 pictures of cells tagged 'readme', not 3"):
        figures.write(executed(tmp_path / "run", pictures=1), tmp_path / "figures", readme)
    assert readme.read_text() == before and not (tmp_path / "figures").exists()
