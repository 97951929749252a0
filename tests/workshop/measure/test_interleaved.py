"""Interleaved timing: in rounds, and summed up."""

import pandas as pd
import pytest

from workshop.measure import interleaved


def test_settings_are_measured_alternately():
    order = []

    def measure(setting):
        order.append(setting)
        return float(len(order))

    measured = interleaved.interleave(measure, {"a": 1, "b": 2}, repeats=3)
    assert order == [1, 2] * 3
    assert measured["a"].tolist() == [1, 3, 5] and measured["b"].tolist() == [2, 4, 6]
    for settings, repeats in (({}, 3), ({"a": 1}, 0)):
        with pytest.raises(ValueError, match="at least one"):
            interleaved.interleave(measure, settings, repeats)


def test_a_summary_has_median_lowest_and_highest():
    measured = pd.DataFrame({"a": [3.0, 1.0, 2.0], "b": [5.0, 7.0, None]})
    assert interleaved.summary(measured).to_dict("index") == {
        "a": {"median": 2, "lowest": 1, "highest": 3},
        "b": {"median": 6, "lowest": 5, "highest": 7},
    }
