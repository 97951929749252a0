"""The first lesson in JupyterLab, in a real browser: Run All, pictures, widgets, no errors.

Of the lesson it takes what a browser shows: title, session, guess, quiz, pictures, and no job.
Pictures of the screen are in build/screenshots/.
"""

import json
import re
from pathlib import Path

import nbformat
import psutil
import pytest
from selenium.webdriver.common.keys import Keys

from lab_harness import PATIENCE, Page, end_lab, wait_for
from local_sagemaker import daemon
from workshop.course.lessons import chosen
from workshop.lesson.quiz import load

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

SHOWN = "return arguments[0].complete && arguments[0].naturalWidth > 0 ? arguments[0].width : 0"

# Of lesson 00: set-up, session, a learner's guess, the quiz; and pictures, which need no job.
CELLS = re.compile(r"^import workshop$|workshop\.(session|predict|guess|quiz)\(", re.MULTILINE)
PICTURE = """with plots.canvas("Two ranks", "step") as axes:
    axes.plot([1, 2])"""
PIECE = """import numpy
plots.interactive.ring([numpy.array([[1, 1], [1, 11], [11, 11]]),
                        numpy.array([[10, 10], [11, 10], [11, 11]])])"""


def shortened(lesson: Path) -> Path:
    """A notebook beside a lesson with the cells that a browser shows and no job."""
    whole = nbformat.read(lesson, as_version=4)
    title, *rest = whole.cells
    chosen_cells = [
        cell
        for cell in rest
        if cell.cell_type == "code"
        and ("parameters" in cell.metadata.get("tags", []) or CELLS.search(cell.source))
    ]
    assert len(chosen_cells) >= 5, "parameters, set-up, session, guess and quiz"
    pieces = (PICTURE, PICTURE, PIECE)
    whole.cells = [title, *chosen_cells, *map(nbformat.v4.new_code_cell, pieces)]
    short = lesson.with_name("00_short.ipynb")
    nbformat.write(whole, short)
    return short


TABS = "#jp-main-dock-panel .lm-TabBar-tabLabel"


def texts(browser, selector: str) -> list[str]:
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map(one => one.textContent)", selector
    )


@pytest.fixture(scope="module")
def page(browser, lab):
    """Lesson 00, opened and run by Run All."""
    (lesson,) = chosen(("00",))
    path = shortened(lab.root / "notebooks" / lesson.name)
    opened = Page(browser, lab, f"notebooks/{path.name}")
    opened.news = opened.windows()
    opened.run_all(1200)
    opened.save()
    return opened


@pytest.fixture(scope="module")
def saved(page):
    """What JupyterLab has written: the executed notebook."""
    return nbformat.read(page.path, as_version=4)


def outputs(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def test_the_first_lesson_is_open_and_no_makers_file_is_in_the_way(browser, lab):
    browser.get(f"{lab.url}/?token={lab.token}")
    listed = ".jp-DirListing-itemText"
    wait_for("the folder is listed", lambda: texts(browser, listed), PATIENCE)
    wait_for("lesson 00 is open", lambda: "00_setup.ipynb" in texts(browser, TABS), PATIENCE)
    assert "Launcher" not in texts(browser, TABS)
    shown = texts(browser, listed)
    assert {"00_setup.ipynb", "reference.ipynb", "exercises", "glossary.md"} <= set(shown)
    assert not {"checks", "instructor", "quiz", "reference", "solutions"} & set(shown)
    assert [name for name in shown if name.endswith(".py")] == []


def test_the_address_stays_in_sight(page, lab):
    """A kernel has run: no note of trust, missing servers or encryption has followed it."""
    log = (lab.root.parent / "lab.log").read_text().strip()
    assert log.endswith(f"?token={lab.token}"), log


def test_kernels_listen_on_no_port(page, lab):
    files = list((lab.root.parent.parent / "run").glob("kernel-*.json"))
    assert {json.loads(path.read_text())["transport"] for path in files} == {"ipc"}


def test_jupyterlab_asks_nothing(page):
    assert page.news == page.windows() == []


def test_every_cell_ran_in_order_and_none_failed(page, saved):
    assert not page.errors()
    code = [cell for cell in saved.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert [o for o in outputs(saved) if o.output_type == "error"] == []
    assert [o.text for o in outputs(saved) if o.get("name") == "stderr"] == []


def test_every_picture_shows(page, saved, browser):
    made = [o for o in outputs(saved) if "<img " in o.get("data", {}).get("text/html", "")]
    shown = page.all(".jp-OutputArea-output img")
    assert len(shown) == len(made) >= 2
    for number, picture in enumerate(shown, start=1):
        assert len(picture.get_attribute("alt")) > 10, "JupyterLab shows its text, too"
        page.picture(picture, f"picture-{number}")
        assert browser.execute_script(SHOWN, picture) >= 300, f"picture {number} does not show"


def test_a_guess_can_be_typed(page):
    (field, *_) = page.all('input[placeholder="a number"]')
    field.send_keys("ninety\n")
    wait_for(
        "'ninety' is refused", lambda: "is not a number" in page.text(".widget-label"), PATIENCE
    )
    field.clear()
    field.send_keys("90\n")
    wait_for("90 is taken", lambda: "is not a number" not in page.text(".widget-label"), PATIENCE)


@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
def test_the_quiz_says_at_once_whether_an_answer_is_right(page, right):
    """The first question is answered right, the second wrong."""
    question = load("00")[0 if right else 1]
    index = question.answer if right else (question.answer + 1) % len(question.choices)
    text = question.choices[index].replace("`", "")
    (choice,) = [e for e in page.all("details summary") if e.text.strip() == text]
    page.click(choice)
    word = "Right." if right else "No."
    wait_for(f"the quiz says {word}", lambda: word in page.text("details[open]"), PATIENCE)
    page.picture(choice, f"quiz-{'right' if right else 'wrong'}")


def test_an_interactive_piece_moves_by_keyboard(page):
    """The notebook's own shortcuts do not take the arrow keys away from the slider."""
    (slider,) = page.all(".workshop-piece input[type=range]")
    (says,) = page.all(".workshop-piece .says")
    page.click(slider)
    slider.send_keys(Keys.HOME, Keys.ARROW_RIGHT)
    assert says.text.startswith("Step 1 of 2, reduce-scatter: ")
    page.picture(says, "piece")


def test_ctrl_c_ends_kernels_and_the_endpoint(lab):
    """The last test here: it ends the JupyterLab that the others use."""
    started = psutil.Process(lab.process.pid).children(recursive=True)
    assert any("ipykernel_launcher" in " ".join(process.cmdline()) for process in started)
    assert daemon.running(lab.state)
    end_lab(lab)
    _, alive = psutil.wait_procs(started, timeout=PATIENCE)
    assert not alive
    assert daemon.running(lab.state) is None
