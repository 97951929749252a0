"""The interactive ring in a real browser, by keyboard and by mouse; no network."""

import numpy as np
import pytest
from test_site import AXE_RUN, RULES, WIDER_THAN_THE_PAGE, axe, errors, outside, set_screen

from workshop.plots import interactive

pytestmark = pytest.mark.slow

MODES = {"light": "#fff", "dark": "#121212; color: #ced6dd"}


def watched_ring(size):
    """What each rank holds after each step of a ring all-reduce, as lesson 02 records it."""
    sums = np.array([[10**rank] * size for rank in range(size)])
    frames = [sums]
    for step in range(2 * (size - 1)):
        before, sums = sums, sums.copy()
        gathers = step >= size - 1
        for rank in range(size):
            sender = (rank - 1) % size
            chunk = (sender - step - (1 - size if gathers else 1)) % size
            sums[rank, chunk] = before[sender, chunk] + (0 if gathers else before[rank, chunk])
        frames.append(sums)
    return [np.array([frame[rank] for frame in frames]) for rank in range(size)]


@pytest.fixture(scope="module")
def write(tmp_path_factory):
    """Write a page with the picture, as a cell would show it, light or dark."""
    shown = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("IPython.display.display", lambda data, raw: shown.append(data["text/html"]))
        interactive.ring(watched_ring(4))

    def write(mode):
        page = tmp_path_factory.mktemp("page") / f"{mode}.html"
        page.write_text(
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Ring</title>'
            f'<body style="background: {MODES[mode]}"><main><h1>Ring</h1>{shown[0]}</main></body>'
        )
        return page.as_uri()

    return write


@pytest.fixture
def page(looked_at, write):
    set_screen(looked_at, 1280, "light")
    looked_at.get(write("light"))
    return looked_at


def test_the_rings_slider_moves_by_keyboard_and_says_what_happens(page):
    from selenium.webdriver.common.keys import Keys

    (piece,) = page.find_elements("css selector", ".workshop-piece")
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


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", [1280, 360])
def test_the_picture_fits_and_everybody_can_use_it(looked_at, write, common_folder, width, mode):
    set_screen(looked_at, width, mode)
    looked_at.get(write(mode))
    assert errors(looked_at) == outside(looked_at) == []
    assert looked_at.execute_script(WIDER_THAN_THE_PAGE) == []
    looked_at.execute_script(axe(common_folder))
    assert looked_at.execute_async_script(AXE_RUN, RULES) == []


def test_data_cannot_end_the_script():
    text = interactive.as_html({"frames": "</script><b>"}, 'a "ring"')
    assert text.count("</script>") == 1 and "<\\/script><b>" in text
    assert 'aria-label="a &quot;ring&quot;"' in text
