"""Interleaved timing: compare speeds fairly on a machine that is not yours alone.

Two measurements minutes apart compare two moments of a machine that others use too. So what is
compared is measured in rounds, each in another order: A B C, C A B, and so on. Whatever disturbs
the machine for a while then disturbs all of them. A ratio is taken within a round.

    settings = {"A": 1, "A again": 1, "B": 2}
    measured = interleave(seconds_of, settings, repeats=7)    # a row for each round
    by_round = ratios(measured, "A")                          # how many times as fast as A
    verdict(by_round["B"], noise=by_round["A again"])         # "faster", "slower" or neither

On ranks, `in_turns` of scripts/demos/collectives/timing.py does the same.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd


def interleave(
    measure: Callable[[Any], float], settings: Mapping[str, Any], repeats: int
) -> pd.DataFrame:
    """Measure each setting `repeats` times, in rounds of random order.

    Args:
        measure: called with a setting; returns a number.
        settings: name -> setting.

    Returns: a row for each round, a column for each name.
    """
    if repeats < 1 or not settings:
        raise ValueError("Give at least one setting and one repeat.")
    rounds = []
    for _ in range(repeats):
        order = random.sample(list(settings), len(settings))
        rounds.append({name: measure(settings[name]) for name in order})
    return pd.DataFrame(rounds, columns=list(settings))


def summary(measured: pd.DataFrame) -> pd.DataFrame:
    """For each column a row with its median, lowest and highest value; NaN is left out."""
    return measured.agg(["median", "min", "max"]).T.set_axis(
        ["median", "lowest", "highest"], axis=1
    )


def ratios(measured: pd.DataFrame, base: str) -> pd.DataFrame:
    """How many times as fast as `base` each other column is, round by round.

    measured: seconds, a row for each round.
    """
    others = measured.columns.drop(base)
    return measured[others].rdiv(measured[base], axis=0)


def band(noise: pd.Series) -> tuple[float, float]:
    """The noise floor: how far two identical configurations lie apart in the median round.

    noise: the ratio of the two, round by round. Which of them is divided by the other is chance,
    so a ratio of 1.25 counts as one of 0.8, too: the band reaches as far down as up. Not
    the worst round's: it grows with the number of rounds, so that more measuring would show less.
    """
    reach = float(np.exp(np.log(noise).abs().median()))
    return 1 / reach, reach


def enough(rounds: int) -> int:
    """How many of so many rounds must lie on one side of 1 to show a direction; 5 of 5, 8 of 9.

    A sign test, two-sided: that many or more would do so by chance in at most 7 of 100 cases. With
    fewer than 5 rounds no number is enough: rounds + 1.
    """
    for most in range(rounds // 2 + 1, rounds + 1):
        if (
            2 * sum(math.comb(rounds, count) for count in range(most, rounds + 1))
            <= 0.07 * 2**rounds
        ):
            return most
    return rounds + 1


def verdict(by_round: pd.Series, noise: pd.Series) -> str:
    """ "faster" or "slower", or "no difference shown" where noise may be the reason.

    Args:
        by_round: how many times as fast, round by round.
        noise: the same of two identical configurations (A/A).

    A difference is shown if its median lies outside the band of `noise`, and if `enough` rounds are
    on one side of 1. So fewer than 5 rounds show nothing.
    """
    above = int((by_round > 1).sum())
    rounds = len(by_round)
    most = max(above, rounds - above)
    median = by_round.median()
    low, high = band(noise)
    if most < enough(rounds) or low <= median <= high:
        return "no difference shown"
    return "faster" if median > 1 else "slower"
