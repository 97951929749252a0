"""What several ranks or instances gain: in measured numbers, and by a formula beyond them."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from workshop.launch.processes import run_together

UNSHAPED = math.inf  # the bandwidth of a link that is not shaped


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


ALONE, APART, TOGETHER, PART = "1 rank", "2 ranks apart", "2 ranks together", "1 rank, part"
RANKS = {ALONE: 1, APART: 2, TOGETHER: 2}  # how many work in each


def step_cost(measured: pd.DataFrame, settings: dict[str, dict], exchange: float) -> StepCost:
    """Take a step apart, from measurements of one rank alone.

    Args:
        measured: samples per second; a row for each repeat, a column for each setting.
        settings: name -> setting, with its batch: those of lesson 01.
        exchange: seconds of the all-reduce between two ranks.
    """
    speed, whole, part = measured.median(), settings[ALONE]["batch"], settings[PART]["batch"]
    return StepCost.measured(whole / speed[ALONE], part / speed[PART], part / whole, exchange)


def speedups(measured: pd.DataFrame, base: str, ranks: dict[str, int] = RANKS) -> pd.DataFrame:
    """The table of a measurement in samples per second.

    Args:
        measured: a row for each repeat, a column for each setting.
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


def compare_scripts(scripts: dict[str, list], options: list, folder: Path) -> pd.DataFrame:
    """Run training scripts one after the other; a row for each with its speed and its weights.

    Args:
        scripts: name -> the command's beginning. options: what all of them get besides.
        folder: where they start, scripts/.

    The speed is that of the fastest epoch: other programs only ever take time away.
    Raises ProcessFailed if one of them fails.
    """
    rows = {}
    for name, command in scripts.items():
        events = run_together([*command, *options], timeout=300, folder=folder)
        speeds = [one["samples_per_second"] for one in events if one["event"] == "epoch"]
        hashes = [one["weights_sha256"] for one in events if one["event"] == "weights"]
        rows[name] = {
            "processes": len(hashes),
            "images/s": round(max(one for one in speeds if one)),
            "different weights": len(set(hashes)),
            "SHA-256 of the weights": hashes[0][:12] + "…",
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def break_even(bandwidths: list[float], seconds: list[float], level: float) -> float | None:
    """The bandwidth below which a step takes longer than `level` seconds.

    bandwidths: of the link, any unit; UNSHAPED for one that is not shaped. seconds: of a step at
    each. Between two measured bandwidths the logarithms are joined by a straight line.
    Returns None if no measured pair of bandwidths has `level` between them.
    """
    known = sorted(zip(bandwidths, seconds, strict=True), reverse=True)
    for (higher, quick), (lower, slow) in itertools.pairwise(known):
        if quick <= level < slow:
            if math.isinf(higher):
                return lower  # somewhere above: of the shaped links none was quick enough
            share = math.log(level / quick) / math.log(slow / quick)
            return higher * (lower / higher) ** share
    return None


def break_even_in_words(bandwidths: list[float], seconds: list[float], level: float) -> str:
    """What several instances are, measured against one, as the bandwidth (Mbit/s) falls.

    The arguments are those of `break_even`.
    """
    found = break_even(bandwidths, seconds, level)
    if found is None:
        slower = min(seconds) > level
        return f"{'slower' if slower else 'no slower'} than one at every bandwidth"
    if found in bandwidths and seconds[bandwidths.index(found)] > level:  # between it and unshaped
        return f"slower than one already at {found:.0f} Mbit/s"
    return f"slower than one below {found:.0f} Mbit/s"
