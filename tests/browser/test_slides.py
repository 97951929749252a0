"""Decks, 1280 x 720, and pages in a real browser: nothing is cut or fetched, all can be read."""

import shutil
from pathlib import Path

import pytest

from lab_harness import SCREENSHOTS
from tools.slides import lesson_cells, write_deck
from workshop.course.pages import Row, write_html

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WIDTH, HEIGHT = 1280, 720
MIN_PIXELS = 12  # the smallest letters that the last row may have to read
READY = 'return document.documentElement.dataset.ready === "yes"'
FETCHED = """return performance.getEntriesByType("resource").map(one => one.name)
    .filter(name => !name.startsWith("data:"))"""
CUT = """const all = ".jp-OutputArea-output, pre"
    return [document.documentElement, ...document.querySelectorAll(all)]
    .filter(one => one.scrollWidth > one.clientWidth + 1)
    .map(one => one.textContent.slice(0, 200))"""
PICTURES = "return [...document.images].map(one => one.complete ? one.naturalWidth : 0)"
LOOK = Path(__file__).with_name("look_at_slides.js").read_text()


def look(browser, page: Path) -> list[dict]:
    """What the browser says of each slide of a deck."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False},
    )
    browser.get(page.as_uri())
    for _ in range(100):
        if browser.execute_async_script(f"setTimeout(arguments[0], 50, (() => {{ {READY} }})())"):
            break
    assert browser.execute_script(FETCHED) == []
    return browser.execute_script(LOOK)


def bad(slides: list[dict]) -> list[dict]:
    return [
        slide
        for slide in slides
        if slide["outside"] or slide["empty"] or slide["smallest"] < MIN_PIXELS
    ]


@pytest.fixture
def deck(browser, lesson_run, tmp_path):
    """deck(lesson): the page of an executed lesson's slides, shown in the browser afterwards."""

    def write(lesson: str) -> Path:
        executed = lesson_run(lesson).path
        page = tmp_path / f"{executed.stem}.html"
        write_deck(lesson_cells(executed), page)
        return page

    yield write
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_slides_of_a_lesson_cut_nothing(browser, deck):
    page = deck("00")
    slides = look(browser, page)
    assert len(slides) > 10
    assert bad(slides) == []
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    browser.execute_script("Reveal.slide(1)")
    browser.save_screenshot(str(SCREENSHOTS / "slides.png"))


def test_a_lessons_page_needs_no_network_and_cuts_nothing(browser, lesson_run, tmp_path):
    """Lesson 00 as `workshop run` would write it, without a server."""
    path = lesson_run("00").path
    copy, name = shutil.copy(path, tmp_path), path.stem
    written = write_html(Path(copy), Row(name, "ok", 1.0), "local", pages=[name])
    browser.get(written.as_uri())
    fetched, cut, pictures = (browser.execute_script(script) for script in (FETCHED, CUT, PICTURES))
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    browser.save_screenshot(str(SCREENSHOTS / f"{name}-page.png"))
    assert fetched == []
    assert cut == []
    assert pictures and min(pictures) >= 500
