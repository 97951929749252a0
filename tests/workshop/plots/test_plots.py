"""The figures show what they were given, and can be read without colour."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.patches import FancyArrowPatch

from workshop import plots
from workshop.plots import cost_model, network


def explained(axes):
    """What the legend says."""
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_bars_with_texts_a_range_and_bounds(shown):
    values = pd.Series({"one": 100.0, "two": 180.0, "four": 200.0})
    spread = pd.DataFrame({"lowest": [90, 170, 150], "highest": [110, 190, 250]}, values.index)
    plots.bar_chart(
        values,
        "Speed",
        "images per second",
        texts="{:.0f}/s",
        spread=spread,
        bounds=pd.Series([50, 60, 70], name="the least"),
    )
    (axes,) = shown
    assert (axes.get_title(), axes.get_xlabel()) == ("Speed", "images per second")
    assert [bar.get_width() for bar in axes.patches] == [100, 180, 200]
    assert [text.get_text() for text in axes.texts] == ["100/s", "180/s", "200/s"]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["one", "two", "four"]
    assert explained(axes) == ["the least"]
    bounds = [line.get_xdata()[0] for line in axes.lines if line.get_xdata()[0] in (50, 60, 70)]
    assert bounds == [50, 60, 70]
    (ranges,) = (segments for segments in axes.collections if hasattr(segments, "get_segments"))
    assert [[point[0] for point in segments] for segments in ranges.get_segments()] == [
        [90, 110],
        [170, 190],
        [150, 250],
    ]
    assert axes.get_xlim()[1] > 250
    assert axes.alt == (
        "Speed (images per second). Bars: one: 100/s; two: 180/s; four: 200/s. "
        "the least: one: 50; two: 60; four: 70."
    )


def test_groups_of_bars_with_bounds_or_as_predictions(shown):
    table = pd.DataFrame({"gloo": [2.0, 4.0], "hierarchical": [1.0, np.nan]}, ["1 x 8", "8 x 1"])
    plots.grouped_bar_chart(
        table.rename_axis("placement"),
        "title",
        "milliseconds",
        bounds=table / 2,
        spread=(table - 0.5, table + 1),
    )
    plots.grouped_bar_chart(table, "title", "a prediction", source="computed")
    measured, predicted = shown
    assert measured.alt == (
        "title (milliseconds). 1 x 8: gloo 2, hierarchical 1. 8 x 1: gloo 4. "
        "computed: 1 x 8: gloo 1, hierarchical 0.5. 8 x 1: gloo 2."
    )
    assert [bar.get_width() for bar in measured.patches[:3]] == [2, 4, 1]
    ranges = [segment[:, 0].tolist() for segment in measured.collections[0].get_segments()]
    assert ranges == [[1.5, 3], [3.5, 5]]
    bounds = [line for line in measured.lines if line.get_marker() == "None"]  # not a range's end
    assert [line.get_xdata()[0] for line in bounds[:2]] == [1, 2]
    assert measured.get_ylabel() == "placement"
    assert explained(measured) == ["gloo", "hierarchical", "computed"]
    assert measured.patches[0].get_hatch() != measured.patches[2].get_hatch()
    assert predicted.patches[0].get_facecolor()[3] == 0 and not predicted.lines
    assert predicted.get_title() == "title (computed)"


def test_numbers_of_another_machine_look_unlike_ones_own(shown):
    values = pd.Series({"one": 3.0})
    for source in ("measured", "recorded", "computed"):
        plots.bar_chart(values, "Time", "seconds", source=source)
    assert [axes.get_title() for axes in shown] == [
        "Time",
        "Time (recorded elsewhere)",
        "Time (computed)",
    ]
    looks = {(axes.patches[0].get_facecolor(), axes.patches[0].get_linestyle()) for axes in shown}
    assert len(looks) == 3
    with pytest.raises(ValueError, match="expected one of measured, recorded, computed"):
        plots.bar_chart(values, "Time", "seconds", source="guessed")


def test_bars_in_time(shown):
    rows = [("rank 0", "compute", 0, 3), ("rank 0", "wait", 3, 2), ("rank 1", "compute", 0, 5)]
    spans = pd.DataFrame(rows, columns=["row", "kind", "start", "length"])
    plots.gantt(spans, "A step", "milliseconds")
    (axes,) = shown
    bars = [
        (bar.get_x(), bar.get_width(), bar.get_y() + bar.get_height() / 2) for bar in axes.patches
    ]
    assert bars == [(0, 3, 0), (3, 2, 0), (0, 5, 1)]
    assert axes.patches[0].get_hatch() != axes.patches[1].get_hatch()
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["rank 0", "rank 1"]
    assert explained(axes) == ["compute", "wait"] and axes.get_xlabel() == "milliseconds"
    assert axes.alt == (
        "A step. Bars in time; their lengths in all (milliseconds). "
        "rank 0: compute 3, from 0 to 3; wait 2, from 3 to 5. rank 1: compute 5, from 0 to 5."
    )


def test_bars_in_time_that_overlap_share_a_row(shown):
    rows = [("sends", "bucket", 0, 5.1), ("sends", "bucket", 3, 4), ("sends", "bucket", 5.1, 1)]
    rows[2] = ("sends", "bucket", 5.1 - 1e-12, 1)  # begins where the first ends, but for rounding
    plots.gantt(pd.DataFrame(rows, columns=["row", "kind", "start", "length"]), "A", "ms")
    first, second, third = shown[0].patches
    assert first.get_y() == third.get_y() < second.get_y()
    assert first.get_y() + first.get_height() <= second.get_y() + 1e-9


def test_lines_can_be_read_without_colour(shown):
    curve = pd.Series([3.0, 9.0], index=[1, 2])
    curves = {"computed": curve, "measured": curve, "other": curve}
    plots.lines(curves, "title", "workers", "kB", top=5)
    (axes,) = shown
    assert [line.get_ydata().tolist() for line in axes.lines] == [[3, 9]] * 3
    assert len({line.get_linestyle() for line in axes.lines}) == 3
    assert axes.get_ylim() == (0, 5) and explained(axes) == list(curves)
    assert axes.alt.startswith("title. Across: workers. Up: kB. computed: from (1, 3) to (2, 9).")


def test_a_rings_steps_show_whose_parts_are_in_each_sum(shown):
    states = [np.array([[1.0, 1.0], [1.0, 11.0]]), np.array([[10.0, 10.0], [11.0, 10.0]])]
    plots.ring_steps(states)
    texts = [text.get_text() for text in shown[0].texts]
    assert texts[0] == "before" and "step 1: reduce-scatter" in texts
    assert texts.count("11") == 2 and texts.count("01") == 3
    assert "2 ranks in 1 steps" in shown[0].alt and "2 of 4 chunks" in shown[0].alt


def test_a_canvas_takes_a_text_of_its_own_and_none_that_is_empty(shown, monkeypatch):
    with plots.canvas("Two ranks", "step", alt="A line that rises.") as axes:
        axes.plot([1, 2])
    assert axes.alt == "A line that rises."
    with pytest.raises(ValueError, match="say in it what the picture shows"):
        plots.show_figure(None, " ")


def test_a_notebook_gets_an_image_with_its_text(monkeypatch):
    from IPython import display

    sent = []
    monkeypatch.setattr(display, "display", lambda data, raw: sent.append(data))
    monkeypatch.setattr("matplotlib.pyplot.get_backend", lambda: "inline")
    with plots.canvas('"Fast" & slow', "seconds") as axes:
        axes.plot([1, 2])
    (data,) = sent
    assert 'alt="&quot;Fast&quot; &amp; slow. Across: seconds."' in data["text/html"]
    assert data["text/plain"] == 'Picture: "Fast" & slow. Across: seconds.'
    assert 'src="data:image/png;base64,iVBOR' in data["text/html"]


@pytest.mark.parametrize("count", [1, 6, 7])
def test_each_picture_has_its_caption(shown, count):
    pictures = np.arange(count * 4, dtype=np.uint8).reshape(count, 2, 2, 1)
    plots.images(pictures, [f"number {number}" for number in range(count)], "Numbers")
    drawn = [axes for axes in shown if axes.images]
    assert [axes.get_title() for axes in drawn] == [f"number {number}" for number in range(count)]
    for axes, picture in zip(drawn, pictures, strict=True):
        assert np.array_equal(axes.images[0].get_array(), picture[..., 0])
        assert axes.images[0].get_clim() == (0, 255), "each picture by the same scale"


def test_no_picture_shows_nothing_and_a_missing_caption_is_said(shown):
    plots.images(np.zeros((0, 2, 2, 1), np.uint8), [], "None")
    assert shown == []
    with pytest.raises(ValueError, match="2 pictures have 1 captions"):
        plots.images(np.zeros((2, 2, 2, 1), np.uint8), ["one"], "Two")


def test_messages_name_the_hops_that_leave_an_instance(shown):
    network.messages({"ring": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 1)]}, 2, 2, "Hops")
    (axes,) = shown
    assert "over the network 1 to 2, 3 to 0" in axes.alt and "2 hops inside" in axes.alt
    arrows = [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    assert sorted(patch.get_linewidth() for patch in arrows) == [1.2, 1.2, 3.2, 3.2]


def test_a_network_is_drawn_with_its_own_names(shown):
    names = {"vpc": "vpc-1", "subnet": "subnet-2", "zone": "us-east-1a", "group": "sg-3"}
    network.vpc(names)
    (axes,) = shown
    labels = " ".join(text.get_text() for text in axes.texts)
    assert all(name in labels for name in (*names.values(), "algo-2"))
    assert all(name in axes.alt for name in names.values())


def test_a_canvas_says_where_measured_marks_are(shown):
    with plots.canvas("Speed", "ranks", "times") as axes:
        axes.errorbar([2], [1.75], yerr=[[0.25], [0.5]], fmt="o", label="measured")
        axes.errorbar([1, 2], [3, 4], yerr=[[0, 0], [1, 1]], fmt="x", label="in turn")
        axes.bar([1], [2], label="bars are not marks")
    description = "measured: at (2, 1.75). in turn: from (1, 3) to (2, 4)."
    assert shown[0].alt == f"Speed. Across: ranks. Up: times. {description}"


@pytest.mark.parametrize(("top", "labels"), [(9, {"2", "5"}), (900, set())])
def test_a_logarithmic_axis_is_labelled_in_one_way(shown, top, labels):
    """Between the powers of ten in the same form, and only where those are too few."""
    with plots.canvas("Title", "x") as axes:
        axes.plot([1, 2], [1, top])
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
    axes.figure.canvas.draw()
    between = {text.get_text() for text in axes.get_yticklabels(minor=True)} - {""}
    assert labels <= between and bool(labels) == bool(between)


def test_stacked_bars_put_the_parts_of_a_step_after_each_other(shown):
    steps = pd.DataFrame(
        {"compute": [100.0, 2], "wait": [3.0, 1], "exposed communication": [4.0, 3]},
        ["28 x 28", "8 x 8"],
    )
    spread = {"lowest": [100, 5], "median": [110, 6], "highest": [120, 9]}
    spread = pd.DataFrame(spread, steps.index)
    plots.stacked_bars(steps, "Most of a step computes", spread=spread)
    (axes,) = shown
    bars = [(bar.get_x(), bar.get_width()) for bar in axes.patches]
    assert bars == [(0, 100), (0, 2), (100, 3), (2, 1), (103, 4), (3, 3)]
    assert explained(axes) == [*steps, "range of rounds; dot: median"]
    assert axes.get_xlabel() == "ms per step"
    assert "8 x 8: compute 2, wait 1, exposed communication 3." in axes.alt


def test_the_scaling_map_has_the_curve_and_a_dot_for_each_configuration(shown):
    columns = ["r", "share", "low", "high", "r_low", "r_high", "label", "source"]
    dots = pd.DataFrame(
        [
            [0.5, 0.6, 0.5, 0.7, 0.4, 0.8, "2 ranks", "measured"],
            [1, 0.5, *[np.nan] * 4, "ResNet", "computed"],
        ],
        columns=columns,
    )
    plots.scaling_map(dots, "Halfway at r = 1")
    (axes,) = shown
    lines = {line.get_label(): line for line in axes.lines}
    curve = lines["nothing hidden: 1 / (1 + r)"]
    assert np.allclose(curve.get_ydata(), 1 / (1 + curve.get_xdata()))
    assert (lines["2 ranks"].get_xdata()[0], lines["2 ranks"].get_ydata()[0]) == (0.5, 0.6)
    assert lines["ResNet (computed)"].get_markerfacecolor() == "white"
    assert [line for line in axes.lines if list(line.get_ydata()) == [0.5, 0.7]]
    assert [line for line in axes.lines if list(line.get_xdata()) == [0.4, 0.8]]
    assert "range of rounds" in explained(axes)
    assert "ResNet (computed): r 1, 50 % of the ceiling." in axes.alt


def test_errors_have_a_band_a_mark_for_each_source_and_a_name_for_the_worst(shown):
    rows = [("links", "recorded", 1.0, -0.3), ("links", "measured", 2.0, 0.05)]
    points = pd.DataFrame(rows, columns=["kind", "source", "measured", "error"])
    cost_model.errors(points, "Two points", worst="a ring")
    (axes,) = shown
    zero, pale, filled = axes.lines
    assert list(zero.get_ydata()) == [0, 0]
    assert (pale.get_alpha(), list(pale.get_ydata())) == (0.4, [-30.0])
    assert (filled.get_alpha(), list(filled.get_xdata())) == (None, [2000.0])
    assert explained(axes) == ["at most 10 %", "links, recorded", "links, this run"]
    (name,) = axes.texts
    assert (name.get_text(), name.xy) == ("a ring", (1000.0, -30.0))
    assert "from -30 to 5 %, of 1000 to 2000 ms" in axes.alt and axes.get_xscale() == "log"


def test_messages_are_marks_on_the_line_that_was_fitted(shown):
    cost_model.message_lines({"all": {8: 1e-3, 800: 2e-3}}, {"all": lambda n: n / 4e5}, "Messages")
    (axes,) = shown
    line, marks, explaining = axes.lines
    assert list(marks.get_xdata()) == [0.008, 0.8] and list(marks.get_ydata()) == [1.0, 2.0]
    assert line.get_ydata()[-1] == pytest.approx(2.0) and explained(axes) == ["all"]
    assert explaining.get_linestyle() == "-" and explaining.get_marker() == "o"
