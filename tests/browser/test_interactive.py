"""The interactive pieces in a real browser, by keyboard and by mouse; no network."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from test_site import AXE_RUN, RULES, WIDER_THAN_THE_PAGE, axe, errors, outside, set_screen

from lab_harness import CHROMIUM, DRIVER, MISSING, chromium
from workshop.measure.alpha_beta import Link, SharedLinks, TwoTiers
from workshop.measure.step_time import Compute, at_bandwidth, step_seconds
from workshop.plots import interactive

pytestmark = pytest.mark.slow

TIERS = TwoTiers(
    SharedLinks(Link(2e-5, 1e-9), Link(4e-5, 3e-9), 2),
    SharedLinks(Link(5e-5, 4e-8), Link(9e-5, 8e-8), 2),
)
COMPUTE = Compute(fixed=1e-3, per_image=1e-4, per_byte=1e-9, per_image_byte=0.0)
MODES = {"light": "#fff", "dark": "#121212; color: #ced6dd"}


def watched_ring(size):
    """What each rank holds after each step of a ring all-reduce, as lesson 02 records it."""
    held = np.array([[10**rank] * size for rank in range(size)])
    frames = [held]
    for step in range(2 * (size - 1)):
        before, held = held, held.copy()
        gathers = step >= size - 1
        for rank in range(size):
            sender = (rank - 1) % size
            chunk = (sender - step - (1 - size if gathers else 1)) % size
            held[rank, chunk] = before[sender, chunk] + (0 if gathers else before[rank, chunk])
        frames.append(held)
    return [np.array([frame[rank] for frame in frames]) for rank in range(size)]


def spans():
    rows = [
        (step, rank, kind, start, ms)
        for step in (2, 3)
        for rank, computes in ((0, 8.0), (1, 5.0 + step))
        for kind, start, ms in (
            ("compute", 0, computes),
            ("wait", computes, 12 - computes),
            ("communicate", 9, 3),
        )
    ]
    return pd.DataFrame(rows, columns=["step", "rank", "kind", "start_ms", "ms"])


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    if not (CHROMIUM and DRIVER):
        pytest.skip(MISSING)
    with chromium(tmp_path_factory.mktemp("chromium"), log_requests=True) as driver:
        yield driver


@pytest.fixture(scope="module")
def outputs():
    """The HTML of each piece, as a cell would show it."""
    shown = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("IPython.display.display", lambda data, raw: shown.append(data["text/html"]))
        interactive.ring(watched_ring(4))
        interactive.timeline(spans())
        interactive.calculator(TIERS, COMPUTE, 1_000_000, 64, overlap=0.25, cores=2)
    return dict(zip(("ring", "timeline", "calculator"), shown, strict=True))


@pytest.fixture(scope="module")
def write(outputs, tmp_path_factory):
    """Write a page with all pieces, as light or dark as asked."""

    def write(mode):
        page = tmp_path_factory.mktemp("page") / f"{mode}.html"
        page.write_text(
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Pieces</title>'
            f'<body style="background: {MODES[mode]}"><main><h1>Pieces</h1>'
            f"{''.join(outputs.values())}</main></body></html>"
        )
        return page.as_uri()

    return write


@pytest.fixture
def page(driver, write):
    set_screen(driver, 1280, "light")
    driver.get(write("light"))
    return driver


def one(driver, selector):
    (found,) = driver.find_elements("css selector", selector)
    return found


def test_the_rings_slider_moves_by_keyboard_and_says_what_happens(page):
    from selenium.webdriver.common.keys import Keys

    piece = one(page, ".workshop-piece[id^=workshop-ring]")
    slider = piece.find_element("css selector", "input[type=range]")
    says = piece.find_element("css selector", ".says")
    assert "0 of 16 chunks are complete" in says.text
    slider.send_keys(Keys.ARROW_RIGHT)
    assert says.text.startswith("Step 1 of 6, reduce-scatter: rank 3 sends chunk 2 to rank 0;")
    slider.send_keys(Keys.END)
    assert says.text.startswith("Step 6 of 6, all-gather:") and "16 of 16" in says.text
    back, _ = piece.find_elements("css selector", "button")
    back.click()
    assert "12 of 16 chunks are complete" in says.text
    assert piece.find_element("css selector", "svg").get_attribute("aria-label") == says.text


def test_the_timeline_says_who_waited(page):
    piece = one(page, ".workshop-piece[id^=workshop-timeline]")
    says = piece.find_element("css selector", ".says")
    assert says.text == (
        "Step 2. Rank 0: computes 8.0 ms, waits 4.0 ms; all-reduce 3.0 ms. "
        "Rank 1: computes 7.0 ms, waits 5.0 ms; all-reduce 3.0 ms."
    )
    piece.find_elements("css selector", "button")[1].click()
    assert "Rank 1: computes 8.0 ms" in says.text
    assert len(piece.find_elements("css selector", "svg[role=img] rect")) == 6


def test_the_calculator_opens_after_a_guess_and_answers_as_the_model_does(page):
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select

    piece = one(page, ".workshop-piece[id^=workshop-calculator]")
    assert not piece.find_elements("css selector", "select, table"), "shut until a guess"
    field = piece.find_element("css selector", "input")
    for wrong in ("many", "-3", "0"):
        field.clear()
        field.send_keys(wrong, Keys.ENTER)
        assert "Type a number above 0" in piece.find_element("css selector", "[role=alert]").text
        assert not piece.find_elements("css selector", "table")
    field.clear()
    field.send_keys("300", Keys.ENTER)
    place = {"instances": 4, "ranks_per_instance": 2}
    asked = COMPUTE, 64, 1e6, "gloo", at_bandwidth(TIERS, 100e6)
    answer = 1000 * step_seconds(*asked, **place)
    assert f"Your guess: 300 ms. The model: {answer:.0f} ms on 8 ranks" in piece.text

    def shown():
        return float(piece.find_element("css selector", "table").get_attribute("data-step-seconds"))

    place = {"instances": 2, "ranks_per_instance": 2}
    expected = step_seconds(COMPUTE, 64, 1e6, "gloo", TIERS, overlap=0.25, **place)
    assert shown() == pytest.approx(expected, rel=1e-9)
    for name, value in {"instances": "8", "rate": "400", "algorithm": "two_tier"}.items():
        Select(piece.find_element("name", name)).select_by_value(value)
    Select(piece.find_element("name", "cores")).select_by_value("2")
    megabytes = piece.find_element("name", "megabytes")
    megabytes.clear()
    assert "Gradients, MB: a number from" in piece.text
    megabytes.send_keys("12.5")
    asked = COMPUTE, 64, 12.5e6, "two_tier", at_bandwidth(TIERS, 400e6)
    place = {"instances": 8, "ranks_per_instance": 2}
    expected = step_seconds(*asked, overlap=0.25, cores=2, **place)
    assert shown() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", [1280, 360])
def test_the_pieces_fit_and_everybody_can_use_them(driver, write, common_folder, width, mode):
    set_screen(driver, width, mode)
    driver.get(write(mode))
    field = driver.find_element("css selector", "[id^=workshop-calculator] input")
    field.send_keys("300\n")
    assert errors(driver) == outside(driver) == []
    assert driver.execute_script(WIDER_THAN_THE_PAGE) == []
    driver.execute_script(axe(common_folder))
    assert driver.execute_async_script(AXE_RUN, RULES) == []


def test_data_cannot_end_the_script():
    text = interactive.as_html("ring", {"frames": "</script><b>"}, 'a "ring"')
    assert text.count("</script>") == 1 and "<\\/script><b>" in text
    assert 'aria-label="a &quot;ring&quot;"' in text


def test_bad_tables_and_tiers_are_said():
    with pytest.raises(ValueError, match="has no rows"):
        interactive.timeline(spans().head(0))
    with pytest.raises(ValueError, match=r"Unknown kinds: \['rest'\]"):
        interactive.timeline(spans().assign(kind="rest"))
    with pytest.raises(ValueError, match="needs both tiers"):
        interactive.calculator(TwoTiers(None, None), COMPUTE, 1, 1)
