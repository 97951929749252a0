"""Interleaved timing: compare speeds fairly on a machine that is not yours alone.

Two measurements minutes apart compare two moments of a machine that others use too. So what is
compared is measured in rounds: A B C, A B C, and so on. Whatever disturbs the machine for a while
then disturbs all of them.

    measured = interleave(seconds_of, {"A": 1, "B": 2}, repeats=5)    # a row for each round
    summary(measured)                                                 # a row for each of A, B

On ranks, `in_turns` of scripts/demos/collectives/timing.py does the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd


def interleave(
    measure: Callable[[Any], float], settings: Mapping[str, Any], repeats: int
) -> pd.DataFrame:
    """Measure each setting `repeats` times, in rounds.

    Args:
        measure: called with a setting; returns a number.
        settings: name -> setting.

    Returns: a row for each round, a column for each name.
    """
    if repeats < 1 or not settings:
        raise ValueError("Give at least one setting and one repeat.")
    return pd.DataFrame(
        {name: measure(setting) for name, setting in settings.items()} for _ in range(repeats)
    )


def summary(measured: pd.DataFrame) -> pd.DataFrame:
    """For each column a row with its median, lowest and highest value; NaN is left out."""
    return measured.agg(["median", "min", "max"]).T.set_axis(
        ["median", "lowest", "highest"], axis=1
    )
