"""The pages of a run: they tell how it went, and need neither a network nor a server."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser

import nbformat
import pytest
from click.testing import CliRunner

from local_sagemaker import daemon
from workshop.cli.run import run
from workshop.course import pages as page
from workshop.lesson.results import MIME

FETCHES = {"src", "srcset", "data", "poster", "background"}
WIDGET = "application/vnd.jupyter.widget-view+json"


class Reader(HTMLParser):
    """What a browser would fetch for a page, and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes) -> None:
        self.inside = tag
        for name, value in attributes:
            if name in FETCHES or (name == "href" and tag != "a"):
                self.fetched.append(value)
            elif name == "href":
                self.links.append(value)

    def handle_data(self, data) -> None:
        if self.inside == "style":
            rules = re.sub(r"/\*.*?\*/", "", data, flags=re.DOTALL)
            self.fetched += re.findall(r"url\(\s*['\"]?([^)'\"]+)", rules)
            self.fetched += re.findall(r"@import\s+['\"]([^'\"]+)", rules)
        elif self.inside == "script":
            self.fetched += re.findall(r"https?://[^\s'\"]+", data)


def from_elsewhere(text: str) -> list[str]:
    """What a page would fetch that does not lie in it."""
    return [one for one in Reader(text).fetched if not one.startswith(("data:", "#"))]


@pytest.fixture(scope="module")
def endpoint_up(own_state):
    """The endpoint is up: a run need not start and end one."""
    daemon.start(own_state, 0)


@pytest.fixture
def written(tmp_path):
    """Write the page of a notebook with these cells; return its text and its reader."""

    def write(*cells, **more):
        notebook = nbformat.v4.new_notebook(cells=list(cells))
        notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
        copy = tmp_path / "build" / "01_x.ipynb"
        copy.parent.mkdir(exist_ok=True)
        nbformat.write(notebook, copy)
        row = page.Row("01_x", "ok", 61.26)
        text = page.write_html(copy, row, "local", tmp_path / "lessons", **more).read_text()
        return text, Reader(text)

    return write


def text_cell(text):
    return nbformat.v4.new_markdown_cell(text)


def code_cell(data):
    output = nbformat.v4.new_output("display_data", data)
    return nbformat.v4.new_code_cell("show()", outputs=[output], execution_count=1)


def test_a_page_and_the_index_tell_the_same_seconds(write_notebook, tmp_path, endpoint_up):
    write_notebook("02_second", "x = 1")
    path = write_notebook("01_first", "import time", "time.sleep(1.5)")
    build = tmp_path / "build"
    options = ["--notebooks", str(path.parent), "--out", str(build)]
    assert CliRunner().invoke(run, options).exit_code == 0
    index = (build / "index.html").read_text()
    for name in ("01_first", "02_second"):
        said = re.search(rf"{name}: ok in (\d+\.\d) s", (build / f"{name}.html").read_text())
        assert f'{name}.html">{name}</a></td><td>ok</td><td class="number">{said[1]}</td>' in index
        assert float(said[1]) > (1.5 if name == "01_first" else 0)


def test_a_failed_notebooks_page_says_so(write_notebook, tmp_path, endpoint_up):
    path = write_notebook("01_bad", "1 / 0")
    options = ["--notebooks", str(path.parent), "--out", str(tmp_path / "build")]
    assert CliRunner().invoke(run, options).exit_code == 1
    text = (tmp_path / "build" / "01_bad.html").read_text()
    assert re.search(r"01_bad: failed in \d+\.\d s", text)


def test_a_page_fetches_nothing(written):
    cells = [
        text_cell("# Title\n\n```python\nx = 1\n```"),
        code_cell({"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"}),
        code_cell({WIDGET: {"model_id": "1"}, "text/plain": "a widget"}),
        code_cell({"application/javascript": "alert(1)", "text/plain": "a program"}),
    ]
    text, reader = written(*cells)
    assert from_elsewhere(text) == []
    assert "data:image/png;base64,iVBORw0KGgo=" in reader.fetched
    assert "<script" not in text


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://cdn/require.js"></script>',
        '<link rel="stylesheet" href="https://cdn/x.css">',
        '<img src="picture.png">',
        "<style>@import 'https://cdn/x.css';</style>",
        "<style>a { background: url(https://cdn/x.png) }</style>",
        "<script>import x from 'https://cdn/x.mjs'</script>",
    ],
)
def test_what_comes_from_elsewhere_is_seen(written, tag):
    text, _ = written(text_cell("# Title"))
    assert len(from_elsewhere(text.replace("</head>", f"{tag}</head>", 1))) == 1


def test_a_widget_shows_what_it_says_without_a_browser(written):
    text, _ = written(code_cell({WIDGET: {"model_id": "1"}, "text/html": "<b>two ranks</b>"}))
    assert "<b>two ranks</b>" in text


@pytest.mark.parametrize(("value", "shown"), [(1, False), (2, True)])
def test_parameters_show_twice_only_where_they_were_changed(written, value, shown):
    cells = [nbformat.v4.new_code_cell(text) for text in ("a = 1", f"# Parameters\na = {value}")]
    cells[0].metadata["tags"], cells[1].metadata["tags"] = ["parameters"], ["injected-parameters"]
    text, _ = written(*cells)
    assert ("# Parameters" in text) == shown


def test_recorded_results_are_not_shown(written):
    text, _ = written(code_cell({MIME: {"secret_name": 1}, "text/plain": "secret_name"}))
    assert "secret_name" not in text


@pytest.mark.parametrize(
    ("hidden", "tag", "said"),
    [(True, "results", "Results"), (True, "figure", "How it is drawn"), (False, "results", "")],
)
def test_a_folded_cell_is_folded_on_the_page(written, hidden, tag, said):
    cell = nbformat.v4.new_code_cell("assert secret_name == 1")
    cell.metadata |= {"jupyter": {"source_hidden": hidden}, "tags": [tag]}
    text, _ = written(cell)
    folded = re.search(r"<details[^>]*><summary>(.*?)</summary>.*secret_name", text, re.DOTALL)
    assert "secret_name" in text and bool(folded) == hidden
    assert not hidden or folded[1].startswith(said)


def test_a_plot_is_sharp_and_described(write_notebook, tmp_path, endpoint_up):
    """Two pixels for one, and the title for those who do not see it."""
    text = "from workshop import plots\nwith plots.canvas('Two ranks', 'step') as axes:\n"
    path = write_notebook("01_plot", text + "    axes.plot([1, 2])")
    build = tmp_path / "build"
    options = ["--notebooks", str(path.parent), "--out", str(build)]
    assert CliRunner().invoke(run, options).exit_code == 0
    (found,) = re.findall(r"<img[^>]*>", (build / "01_plot.html").read_text())
    assert 'alt="Two ranks. Across: step."' in found
    data = base64.b64decode(re.search(r'base64,([^"]+)"', found)[1])
    pixels = int.from_bytes(data[16:20], "big")  # the width in a PNG's header
    assert pixels // 2 == int(re.search(r'width="(\d+)"', found)[1]) > 500


def test_links_lead_where_they_lead_in_the_notebook(written, tmp_path):
    """To a page of this run, to a file of the kit, or out: nowhere else."""
    folder = tmp_path / "lessons"
    (folder / "exercises").mkdir(parents=True)
    for name in ("01_x.ipynb", "02_y.ipynb", "03_z.ipynb", "exercises/02_y.ipynb", "a b.md"):
        (folder / name).touch()
    text = (
        "[a](02_y.ipynb#part) [b](03_z.ipynb) [c](exercises/02_y.ipynb) [d](a%20b.md)"
        " [e](https://x.org/02_y.ipynb) [f](#part)"
    )
    _, reader = written(text_cell(text), pages={"01_x", "02_y"})
    assert reader.links == [
        "index.html",
        "02_y.html#part",
        "../lessons/03_z.ipynb",
        "../lessons/exercises/02_y.ipynb",
        "../lessons/a%20b.md",
        "https://x.org/02_y.ipynb",
        "#part",
    ]
