"""The decks in a real browser, 1280 x 720: nothing is cut, nothing is fetched, all can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab_harness import SCREENSHOTS
from tools.slides import lesson_cells, write_deck

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

WIDTH, HEIGHT = 1280, 720
MIN_PIXELS = 12  # the smallest letters that the last row may have to read
READY = 'return document.documentElement.dataset.ready === "yes"'
FETCHED = """return performance.getEntriesByType("resource").map(one => one.name)
    .filter(name => !name.startsWith("data:"))"""
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
    # Without the script that fits them, the same slides are too large, and it is noticed.
    text = page.read_text()
    assert text.count("forEach(fit)") == 1
    page.write_text(
        text.replace("forEach(fit)", "forEach(() => {})").replace(
            "</h1>", "</h1>" + 300 * "<br>long<br>", 1
        )
    )
    assert bad(look(browser, page))
