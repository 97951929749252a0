"""Interleaved timing: in rounds, summed up, and judged."""

import pandas as pd
import pytest

from workshop.measure import interleaved


def test_settings_are_measured_in_rounds_of_random_order():
    order = []

    def measure(setting):
        order.append(setting)
        return float(setting)

    settings = {"a": 1, "b": 2, "c": 3}
    measured = interleaved.interleave(measure, settings, repeats=20)
    rounds = [tuple(order[at : at + 3]) for at in range(0, 60, 3)]
    assert {tuple(sorted(each)) for each in rounds} == {(1, 2, 3)}
    assert len(set(rounds)) > 1, "each round had the same order"
    assert list(measured) == ["a", "b", "c"] and set(measured["b"]) == {2}
    for bad, repeats in (({}, 3), ({"a": 1}, 0)):
        with pytest.raises(ValueError, match="at least one"):
            interleaved.interleave(measure, bad, repeats)


def test_a_summary_has_median_lowest_and_highest():
    measured = pd.DataFrame({"a": [3.0, 1.0, 2.0], "b": [5.0, 7.0, None]})
    assert interleaved.summary(measured).to_dict("index") == {
        "a": {"median": 2, "lowest": 1, "highest": 3},
        "b": {"median": 6, "lowest": 5, "highest": 7},
    }


def test_a_ratio_is_taken_within_its_round():
    measured = pd.DataFrame({"one": [2.0, 20.0], "two": [1.0, 10.0]})
    assert interleaved.ratios(measured, "one")["two"].tolist() == [2, 2]


@pytest.mark.parametrize(
    "by_round, noise, expected",
    [
        ([1.5] * 5, [0.9, 1.1], "faster"),
        ([0.5] * 5, [0.9, 1.1], "slower"),
        ([1.5] * 4, [0.9, 1.1], "no difference shown"),  # 4 of 4: 12 of 100 times by chance
        ([1.5] * 5, [0.9, 1.6, 1.7], "no difference shown"),  # two equal ones differ as much
        ([1.5] * 5, [0.6, 0.6, 1.1], "no difference shown"),  # and would, named the other way round
        ([1.5] * 5, [0.9, 1.1, 2.0], "faster"),  # one disturbed round of the same proves nothing
        ([1.5, 1.5, 1.5, 0.9, 0.9], [0.95, 1.05], "no difference shown"),
        ([1.5] * 8 + [0.9], [0.9, 1.1], "faster"),
    ],
)
def test_a_difference_is_shown_beyond_noise_and_chance(by_round, noise, expected):
    assert interleaved.verdict(pd.Series(by_round), pd.Series(noise)) == expected


def test_so_many_rounds_on_one_side_are_hardly_chance():
    rounds = {0: 1, 4: 5, 5: 5, 6: 6, 7: 7, 8: 8, 9: 8, 10: 9, 15: 12}
    assert {count: interleaved.enough(count) for count in rounds} == rounds
