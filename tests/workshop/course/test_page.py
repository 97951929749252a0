"""The pages of a run: they tell how it went, and need neither a network nor a server."""

import re

import nbformat
import pytest
from bs4 import BeautifulSoup

from workshop.course import pages as page
from workshop.lesson import guess
from workshop.lesson.results import MIME

FETCHES = {"src", "srcset", "data", "poster", "background"}
WIDGET = "application/vnd.jupyter.widget-view+json"


def fetched(text: str) -> list[str]:
    """What a browser would fetch for a page."""
    soup = BeautifulSoup(text, "html.parser")
    urls = [tag[name] for tag in soup(True) for name in FETCHES & set(tag.attrs)]
    urls += [tag["href"] for tag in soup(href=True) if tag.name != "a"]
    styles = "".join(re.sub(r"/\*.*?\*/", "", tag.text, flags=re.DOTALL) for tag in soup("style"))
    urls += re.findall(r"url\(\s*['\"]?([^)'\"]+)", styles)
    urls += re.findall(r"@import\s+['\"]([^'\"]+)", styles)
    return urls + re.findall(r"https?://[^\s'\"]+", "".join(tag.text for tag in soup("script")))


def from_elsewhere(text: str) -> list[str]:
    """What a page would fetch that does not lie in it."""
    return [url for url in fetched(text) if not url.startswith(("data:", "#"))]


@pytest.fixture
def written(tmp_path):
    """Write the page of a notebook with these cells; return its text."""

    def write(*cells, **options):
        notebook = nbformat.v4.new_notebook(cells=list(cells))
        notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
        copy = tmp_path / "build" / "01_x.ipynb"
        copy.parent.mkdir(exist_ok=True)
        nbformat.write(notebook, copy)
        row = page.Row("01_x", "ok", 61.26)
        return page.write_html(copy, row, "local", tmp_path / "lessons", **options).read_text()

    return write


def code_cell(data):
    output = nbformat.v4.new_output("display_data", data)
    return nbformat.v4.new_code_cell("show()", outputs=[output], execution_count=1)


def test_a_page_fetches_nothing(written):
    cells = [
        nbformat.v4.new_markdown_cell("# Title\n\n```python\nx = 1\n```"),
        code_cell({"image/png": "iVBORw0KGgo=", "text/plain": "<Figure>"}),
        code_cell({WIDGET: {"model_id": "1"}, "text/plain": "a widget"}),
        code_cell({"application/javascript": "alert(1)", "text/plain": "a program"}),
    ]
    text = written(*cells)
    assert from_elsewhere(text) == []
    assert "data:image/png;base64,iVBORw0KGgo=" in fetched(text)
    assert "<script" not in text and "a widget" in text
    spoilt = text.replace("</head>", '<link rel="stylesheet" href="https://cdn/x.css"></head>', 1)
    assert from_elsewhere(spoilt) == ["https://cdn/x.css"], "it would be seen"


@pytest.mark.parametrize("kind", ["stream", "display_data"])
def test_a_page_asks_for_a_guess_on_paper(written, kind):
    """A reader has no cell to answer in: the question and its choices are left."""
    question = guess.Guess({"a": ("Which?", ["one", "other"]), "b": "How many?"}).instructions()
    content = {"text": question} if kind == "stream" else {"data": {"text/plain": question}}
    output = nbformat.v4.new_output(kind, **content)
    text = written(nbformat.v4.new_code_cell("guess = 1", outputs=[output]))
    for word in ("Write it down before you read on", "Which?", "other", "How many?"):
        assert word in text
    assert "cell of your own" not in text and "guess[" not in text


@pytest.mark.parametrize(("value", "shown"), [(1, False), (2, True)])
def test_parameters_show_twice_only_where_they_were_changed(written, value, shown):
    cells = [nbformat.v4.new_code_cell(text) for text in ("a = 1", f"# Parameters\na = {value}")]
    cells[0].metadata["tags"], cells[1].metadata["tags"] = ["parameters"], ["injected-parameters"]
    text = written(*cells)
    assert ("# Parameters" in text) == shown


def test_recorded_results_are_not_shown(written):
    text = written(code_cell({MIME: {"secret_name": 1}, "text/plain": "secret_name"}))
    assert "secret_name" not in text


@pytest.mark.parametrize(
    ("hidden", "tag", "summary"),
    [(True, "results", "Results"), (True, "figure", "How it is drawn"), (False, "results", "")],
)
def test_a_folded_cell_is_folded_on_the_page(written, hidden, tag, summary):
    cell = nbformat.v4.new_code_cell("assert secret_name == 1")
    cell.metadata |= {"jupyter": {"source_hidden": hidden}, "tags": [tag]}
    text = written(cell)
    folded = re.search(r"<details[^>]*><summary>(.*?)</summary>.*secret_name", text, re.DOTALL)
    assert "secret_name" in text and bool(folded) == hidden
    assert not hidden or folded[1].startswith(summary)


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
    page = written(nbformat.v4.new_markdown_cell(text), pages={"01_x", "02_y"})
    soup = BeautifulSoup(page, "html.parser")
    assert [link["href"] for link in soup("a", href=True)] == [
        "index.html",
        "02_y.html#part",
        "../lessons/03_z.ipynb",
        "../lessons/exercises/02_y.ipynb",
        "../lessons/a%20b.md",
        "https://x.org/02_y.ipynb",
        "#part",
    ]
