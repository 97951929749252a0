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
# For each slide: what of it lies outside the window, and the size of its smallest letters.
LOOK = """return Reveal.getSlides().map((slide, at) => {
  const {h, v} = Reveal.getIndices(slide)
  Reveal.slide(h, v)
  const hidden = "style, .notes, details:not([open]) > :not(summary)"
  const inside = [...slide.querySelectorAll("*")].filter(one => !one.closest(hidden))
  const outside = inside.filter(one => {
    const box = one.getBoundingClientRect()
    const cut = box.width && (box.left < -1 || box.top < -1
      || box.right > innerWidth + 1 || box.bottom > innerHeight + 1)
    return cut || (one.clientWidth && getComputedStyle(one).overflowX !== "visible"
      && one.scrollWidth > one.clientWidth + 1)
  })
  const letters = inside.filter(one => one.textContent.trim() && !one.closest("svg")).map(
    one => parseFloat(getComputedStyle(one).fontSize) * (one.currentCSSZoom || 1))
  return {at, heading: slide.querySelector("h1, h2").textContent,
    empty: !slide.querySelector("p, ul, table, pre, .jp-OutputArea-output"),
    outside: outside.map(one => one.tagName + " " + one.textContent.slice(0, 60)),
    smallest: Math.min(...letters)}
})"""


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
    yield lambda lesson: _deck(lesson_run(lesson).path, tmp_path)
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def _deck(executed: Path, folder: Path) -> Path:
    page = folder / f"{executed.stem}.html"
    write_deck(lesson_cells(executed), page)
    return page


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
