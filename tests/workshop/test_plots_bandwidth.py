"""The pictures of bandwidth: where lines cross, and that what is drawn is what was given."""

import pandas as pd
import pytest

from workshop.measure.scaling import UNSHAPED, break_even, break_even_in_words
from workshop.plots import collectives as pictures


def test_where_a_narrow_link_makes_a_step_slower_than_one_instance():
    # seconds = 10 / rate: 0.05 s is met at 200, whatever the order of the measurements.
    assert break_even([50, 400, 100], [0.2, 0.025, 0.1], 0.05) == pytest.approx(200)
    assert break_even([100, 50], [0.1, 0.2], 0.1) == pytest.approx(100)


def test_without_a_crossing_there_is_none():
    assert break_even([100, 50], [0.1, 0.2], 0.05) is None, "slower even on the widest link"
    assert break_even([100, 50], [0.1, 0.2], 0.3) is None, "quicker even on the narrowest"


def test_wide_has_no_number_to_cross_at():
    assert break_even([UNSHAPED, 100], [0.1, 0.2], 0.15) == 100


@pytest.mark.parametrize(
    ("rates", "seconds", "words"),
    [
        ([400, 100], [0.025, 0.1], "slower than one below 200 Mbit/s"),
        ([UNSHAPED, 400], [0.02, 0.1], "slower than one already at 400 Mbit/s"),
        ([UNSHAPED, 400], [0.06, 0.1], "slower than one at every bandwidth"),
        ([UNSHAPED, 400], [0.02, 0.05], "no slower than one at every bandwidth"),
        ([UNSHAPED, 400, 200], [0.02, 0.05, 0.1], "slower than one below 400 Mbit/s"),
    ],
)
def test_the_break_even_in_words(rates, seconds, words):
    assert break_even_in_words(rates, seconds, 0.05) == words


def marks(axes) -> list:
    return [one for one in axes.lines if one.get_fillstyle() == "none"]


def test_the_crossing_is_marked_and_said(shown):
    rows = [("DDP", UNSHAPED, 0.02), ("DDP", 400, 0.025), ("DDP", 100, 0.1), ("DDP", 50, 0.2)]
    table = pd.DataFrame(rows, columns=["name", "mbit", "step_seconds"])
    pictures.step_time_by_bandwidth(table, {"DDP": 0.05})
    (axes,) = shown
    assert [one.get_text() for one in axes.get_xticklabels()] == ["unshaped", "400", "100", "50"]
    left, right = axes.get_xlim()
    assert left > right, "narrower to the right"
    (marked,) = marks(axes)
    assert marked.get_xdata()[0] == pytest.approx(200) and marked.get_ydata()[0] == 50
    said = [one.get_text() for one in axes.get_legend().get_texts()]
    assert said == ["DDP", "DDP, one instance", "slower than one below 200 Mbit/s"]


def test_the_mark_stands_where_the_lines_meet_beyond_the_narrow_links_too(shown):
    table = pd.DataFrame({"name": "DDP", "mbit": [UNSHAPED, 400], "step_seconds": [0.025, 0.1]})
    pictures.step_time_by_bandwidth(table, {"DDP": 0.05})
    (marked,) = marks(shown[0])
    assert marked.get_xdata()[0] == pytest.approx(400 * 2**0.5)  # "unshaped" stands at 800


def test_wide_links_alone_are_a_picture_too(shown):
    """On AWS nothing else is tried."""
    table = pd.DataFrame([("DDP", UNSHAPED, 0.3)], columns=["name", "mbit", "step_seconds"])
    pictures.step_time_by_bandwidth(table, {"DDP": 0.05})
    (axes,) = shown
    assert [one.get_text() for one in axes.get_xticklabels()] == ["unshaped"] and not marks(axes)


def test_no_mark_where_two_instances_are_never_worth_it(shown):
    table = pd.DataFrame([("DDP", 400, 0.3)], columns=["name", "mbit", "step_seconds"])
    pictures.step_time_by_bandwidth(table, {"DDP": 0.05})
    assert not marks(shown[0])


def test_predictions_and_their_median_error(shown):
    rows = [("gloo", 1.1, 1.0), ("gloo", 0.5, 1.0), ("two_tier", 0.3, 0.3)]
    table = pd.DataFrame(rows, columns=["algorithm", "predicted", "measured"])
    pictures.predicted_against_measured(table)
    (axes,) = shown
    assert axes.get_title() == "3 all-reduces: median error 10%"
    drawn = {one.get_label(): one.get_xydata().tolist() for one in axes.lines}
    assert drawn["gloo"] == [[1000.0, 1100.0], [1000.0, 500.0]]
    assert all(low < 300 and high > 1100 for low, high in (axes.get_xlim(), axes.get_ylim()))


def test_bars_with_their_bounds(shown):
    rows = [("gloo", 0.7, 0.6), ("two_tier", 0.4, 0.3)]
    table = pd.DataFrame(rows, columns=["algorithm", "measured", "bound"])
    pictures.all_reduce_bars(table)
    (axes,) = shown
    assert [one.get_width() for one in axes.patches] == [700.0, 400.0]
    assert [one.get_xdata()[0] for one in axes.lines] == [600.0, 300.0]


def test_placements_side_by_side(shown):
    rows = [("1 x 8", "gloo", 0.1, 0.2), ("8 x 1", "gloo", 0.3, 0.4)]
    table = pd.DataFrame(rows, columns=["placement", "algorithm", "predicted", "measured"])
    pictures.by_placement(table, "title")
    pictures.by_placement(table.drop(columns="measured"), "title", measured=False)
    measured, predicted = shown
    assert [one.get_height() for one in measured.patches] == [200.0, 400.0]
    assert measured.lines[0].get_ydata().tolist() == [100.0, 300.0]
    assert [one.get_height() for one in predicted.patches] == [100.0, 300.0]
    assert "a prediction" in predicted.get_ylabel() and not predicted.lines
