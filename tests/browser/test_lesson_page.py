"""The page of an executed lesson in a real browser, without a server."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from test_slides import FETCHED

from lab_harness import SCREENSHOTS
from workshop.course.pages import Row, write_html

pytestmark = [pytest.mark.reads_lessons, pytest.mark.timeout(900)]

CUT = """const all = ".jp-OutputArea-output, pre"
    return [document.documentElement, ...document.querySelectorAll(all)]
    .filter(one => one.scrollWidth > one.clientWidth + 1)
    .map(one => one.textContent.slice(0, 200))"""
PICTURES = "return [...document.images].map(one => one.complete ? one.naturalWidth : 0)"


def test_a_lessons_page_needs_no_network_and_cuts_nothing(browser, lesson_run, tmp_path):
    """Lesson 00 as `workshop run` would write it."""
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
