"""Speed-up: the formula against numbers worked out by hand, the tables against given times."""

import sys

import pandas as pd
import pytest

from workshop import plots
from workshop.measure.scaling import (
    StepCost,
    compare_scripts,
    speedups,
    step_cost,
)


def amdahl(ranks, fixed_share):
    """Amdahl's law, as lesson 01 says it."""
    return 1 / (fixed_share + (1 - fixed_share) / ranks)


def test_without_exchange_it_is_amdahls_law():
    cost = StepCost(divided=0.075, fixed=0.025, exchange=0)
    assert cost.fixed_share == pytest.approx(0.25)
    for ranks in (1, 2, 16, 64):
        assert cost.speedup(ranks) == pytest.approx(amdahl(ranks, 0.25))
    assert cost.limit == pytest.approx(4)


def test_the_exchange_is_none_for_one_rank_once_for_two_and_nearly_twice_for_many():
    cost = StepCost(divided=0, fixed=0, exchange=1)
    assert [cost.seconds(ranks) for ranks in (1, 2, 4)] == [0, 1, 1.5]
    assert cost.seconds(10_000) == pytest.approx(2, rel=1e-3)


def test_more_ranks_can_be_slower_than_one():
    cost = StepCost(divided=0.004, fixed=0.01, exchange=0.02)
    assert cost.speedup(2) == pytest.approx(0.014 / 0.032)
    assert cost.limit == pytest.approx(0.014 / 0.05)
    assert StepCost(divided=1, fixed=0, exchange=0).limit == float("inf")


def test_one_ranks_time_is_taken_apart():
    # 2 ms for every step and 10 ms for the whole batch: a tenth of it takes 3 ms.
    cost = StepCost.measured(whole=0.012, part=0.003, share=0.1, exchange=0.001)
    assert cost.divided == pytest.approx(0.010) and cost.fixed == pytest.approx(0.002)
    assert cost.seconds(1) == pytest.approx(0.012)


@pytest.mark.parametrize(("part", "divided"), [(0.02, 0), (0.0, 0.01)])
def test_noise_makes_no_part_negative(part, divided):
    cost = StepCost.measured(whole=0.01, part=part, share=0.5, exchange=0)
    assert cost.divided == pytest.approx(divided) and cost.fixed >= 0
    assert cost.seconds(1) == pytest.approx(0.01)


@pytest.mark.parametrize("share", [0, 1, 32])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match="between 0 and 1"):
        StepCost.measured(1, 0.5, share, 0)


def test_a_steps_cost_comes_from_one_ranks_measurements():
    # A step takes 2 ms and 1 ms per image.
    seconds = {"1 rank": 0.002 + 0.064, "1 rank, part": 0.002 + 0.002}
    measured = pd.DataFrame({"1 rank": [64 / seconds["1 rank"]] * 3})
    measured["1 rank, part"] = [2 / seconds["1 rank, part"]] * 3
    ways = {"1 rank": {"batch": 64}, "1 rank, part": {"batch": 2}}
    cost = step_cost(measured, ways, exchange=0.5)
    assert cost.divided == pytest.approx(0.064) and cost.fixed == pytest.approx(0.002)
    assert cost.exchange == 0.5


def test_a_row_for_each_script_with_its_fastest_epoch(tmp_path):
    (tmp_path / "s.py").write_text(
        """if True:
        import json, sys
        for speed in (None, 10.0, 30.0, 20.0):
            print(json.dumps({"event": "epoch", "samples_per_second": speed}))
        for rank in range(int(sys.argv[1])):
            print(json.dumps({"event": "weights", "rank": rank, "weights_sha256": sys.argv[2]}))
        """
    )
    script = [sys.executable, "s.py"]
    table = compare_scripts({"one": [*script, 1], "two": [*script, 2]}, ["ab" * 32], tmp_path)
    assert table["processes"].to_dict() == {"one": 1, "two": 2}
    assert set(table["images/s"]) == {30} and set(table["different weights"]) == {1}


@pytest.fixture
def measured():
    """The machine is half as fast in the second repeat: ratios are those of one repeat."""
    return pd.DataFrame({"1": [100.0, 50.0, 110.0], "2": [180.0, 90.0, 198.0], "x": [1.0] * 3})


def test_speedups_compare_within_a_repeat(measured):
    table = speedups(measured, "1", {"1": 1, "2": 2})
    assert list(table.index) == ["1", "2"]
    assert table.loc["2", "speed-up"] == pytest.approx(1.8)
    assert table.loc["2", "efficiency"] == pytest.approx(0.9)
    assert table.loc["1", ["samples per second", "lowest", "highest"]].tolist() == [100, 50, 110]


@pytest.fixture
def figure(monkeypatch):
    """The axes of what is drawn, in place of showing it."""
    import matplotlib.pyplot as plt

    drawn = []
    monkeypatch.setattr(plt, "show", lambda: drawn.append(plt.gcf()))
    return lambda: drawn[-1].axes[0]


def test_the_plot_says_what_is_formula_and_what_is_measured(figure):
    cost = StepCost(divided=0.9, fixed=0.1, exchange=0)
    plots.predicted_speedup({"mine": cost}, {"mine": 1.7}, most=64)
    lines = {line.get_label(): line for line in figure().lines}
    formula, points = lines["mine, formula"], lines["mine, measured"]
    assert formula.get_xdata()[-1] == 64
    assert formula.get_ydata()[-1] == pytest.approx(amdahl(64, 0.1))
    assert list(points.get_xdata()) == [1, 2] and list(points.get_ydata()) == [1, 1.7]
    assert any("nothing measured" in text.get_text() for text in figure().texts)


def test_the_bars_show_median_range_and_efficiency(figure, measured):
    plots.speedup_bars(speedups(measured, "1", {"1": 1, "2": 2}))
    assert [bar.get_width() for bar in figure().patches] == [100, 180]
    said = [text.get_text() for text in figure().texts]
    assert said == ["1.00 x, efficiency 100%", "1.80 x, efficiency 90%"]
    assert "samples per second" in figure().get_xlabel()


def test_a_line_for_each_way_and_a_point_for_each_seed(figure):
    plots.loss_by_update({"sync": [3, 2], "async": [3, 4]}, "title")
    assert [list(line.get_ydata()) for line in figure().lines] == [[3, 2], [3, 4]]
    runs = pd.DataFrame({"setting": ["a", "a", "b"], "accuracy": [0.5, 0.7, 0.9]})
    plots.accuracy_by_setting(runs)
    points = [line for line in figure().lines if line.get_marker() == "o"]
    assert [list(line.get_xdata()) for line in points] == [[50, 70], [90]]
