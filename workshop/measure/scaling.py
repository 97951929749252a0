"""What several ranks gain: measure it side by side, and say with a formula where it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd


def amdahl(world_size: float, fixed_share: float) -> float:
    """Amdahl's law: the speed-up if only a part of the work can be divided.

    Args:
        world_size: how many ranks divide it, 1 or more.
        fixed_share: 0 to 1, the share of one rank's time that each rank needs whole.
    """
    if world_size < 1 or not 0 <= fixed_share <= 1:
        raise ValueError(
            f"world_size {world_size} and fixed_share {fixed_share}: give at least 1 rank and a "
            "share between 0 and 1."
        )
    return 1 / (fixed_share + (1 - fixed_share) / world_size)


@dataclass(frozen=True)
class StepCost:
    """The seconds of one step, for a global batch of fixed size, in three parts.

    Attributes:
        divided: what the ranks divide: work per image, for the whole global batch.
        fixed: what every rank does whole: starting operations, updating all weights.
        exchange: the all-reduce of the gradients between two ranks.
    """

    divided: float
    fixed: float
    exchange: float

    @classmethod
    def measured(cls, whole: float, part: float, share: float, exchange: float) -> StepCost:
        """Take one rank's time apart.

        Args:
            whole: seconds of a step with the whole global batch, on one rank.
            part: seconds of a step with only a `share` of the batch, on one rank.
            share: above 0, below 1.
            exchange: seconds of the all-reduce between two ranks.

        Time that does not shrink with the batch is fixed. Noise cannot make a part negative.
        """
        if not 0 < share < 1:
            raise ValueError(f"share is {share}; it must lie between 0 and 1, for example 1/32.")
        divided = min(max(0.0, (whole - part) / (1 - share)), whole)
        return cls(divided, whole - divided, exchange)

    @property
    def fixed_share(self) -> float:
        """The share of one rank's step that cannot be divided, 0 to 1."""
        return self.fixed / (self.fixed + self.divided)

    def seconds(self, world_size: int) -> float:
        """Seconds of a step on so many ranks, each with a core and a link of its own.

        A ring all-reduce sends 2 (N - 1) / N times the gradients' bytes over each link: with two
        ranks once, with many nearly twice.
        """
        ring = 2 * (world_size - 1) / world_size
        return self.fixed + self.divided / world_size + self.exchange * ring

    def speedup(self, world_size: int) -> float:
        """How many times as fast as one rank, with the exchange of gradients."""
        return self.seconds(1) / self.seconds(world_size)

    @property
    def limit(self) -> float:
        """What the speed-up comes close to with ever more ranks."""
        rest = self.fixed + 2 * self.exchange
        return self.seconds(1) / rest if rest else float("inf")


def samples_per_second(seconds: list[float | None], images: int) -> float:
    """The samples (here: images) that all ranks together get through in a second.

    Args:
        seconds: of one step, by rank; None for a rank that has no part in it.
        images: per rank and step.
    """
    return sum(images / one for one in seconds if one is not None)


ALONE, APART, TOGETHER, PART = "1 rank", "2 ranks apart", "2 ranks together", "1 rank, part"
RANKS = {ALONE: 1, APART: 2, TOGETHER: 2}  # how many work in each


def ways(batch: int, model: dict) -> dict[str, dict]:
    """Settings for scripts/parallel/speed.py: ways to get through one global batch.

    One rank takes all of it; two ranks take half each, apart or together. The last is one rank
    with a 32nd of the batch, from which `step_cost` learns what does not shrink.

    Args:
        batch: the global batch, images; at least 2.
        model: what else the script needs: side and hidden_units.
    """
    part = {"ranks": "one", "batch": max(1, batch // 32)}
    return {
        ALONE: {"ranks": "one", "batch": batch} | model,
        APART: {"ranks": "apart", "batch": batch // 2} | model,
        TOGETHER: {"ranks": "together", "batch": batch // 2} | model,
        PART: part | model,
    }


def step_cost(measured: pd.DataFrame, settings: dict[str, dict], exchange: float) -> StepCost:
    """Take a step apart, from measurements of one rank alone.

    Args:
        measured: samples per second of `settings`; what `interleave` returned.
        settings: what `ways` returned.
        exchange: seconds of the all-reduce between two ranks.
    """
    speed, whole, part = measured.median(), settings[ALONE]["batch"], settings[PART]["batch"]
    return StepCost.measured(whole / speed[ALONE], part / speed[PART], part / whole, exchange)


def interleave(measure: Callable, settings: dict[str, dict], repeats: int) -> pd.DataFrame:
    """Measure each setting `repeats` times, in turns: A B C, A B C, and so on.

    What disturbs the machine for a while then disturbs all settings, and not one alone.

    Args:
        measure: called with a setting; returns a number.
        settings: name -> setting.

    Returns: a row for each repeat, a column for each name.
    """
    if repeats < 1 or not settings:
        raise ValueError("Give at least one setting and one repeat.")
    rows = [{name: measure(one) for name, one in settings.items()} for _ in range(repeats)]
    return pd.DataFrame(rows)


def speedups(measured: pd.DataFrame, base: str, ranks: dict[str, int] = RANKS) -> pd.DataFrame:
    """The table of a measurement in samples per second.

    Args:
        measured: what `interleave` returned.
        base: the column that the others are compared with.
        ranks: how many work in each column; the columns of the table, in this order.

    Returns: for each setting the median samples per second, the lowest and highest, the median of
        its speed-up over `base` in the same repeat, and efficiency: the speed-up for each rank.
    """
    table = pd.DataFrame(
        {
            "samples per second": measured.median(),
            "lowest": measured.min(),
            "highest": measured.max(),
            "speed-up": measured.div(measured[base], axis="index").median(),
        }
    ).loc[list(ranks)]
    return table.assign(efficiency=table["speed-up"] / pd.Series(ranks))


def ratio(measured: pd.DataFrame, above: str, below: str) -> float:
    """The median of one column over another, taken repeat by repeat."""
    return float((measured[above] / measured[below]).median())
