"""Plots of the links between instances: what narrow ones cost, and what the model says."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from workshop.plots.collectives import COLOUR_OF, MARKER_OF
from workshop.plots.look import COLOURS, canvas

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

WIDE = math.inf  # the rate of a link that is not shaped


def predicted_against_measured(table: pd.DataFrame) -> None:
    """Each measurement against its prediction: on the line both are equal, the band is 20 %.

    table: columns algorithm, predicted and measured (seconds), a row for each measurement.
    """
    ends = 1000 * np.array([table[["predicted", "measured"]].min().min() / 1.5, 0])
    ends[1] = 1500 * table[["predicted", "measured"]].max().max()
    error = (table["predicted"] / table["measured"] - 1).abs().median()
    title = f"{len(table)} all-reduces: median error {error:.0%}"
    labels = ("measured (milliseconds)", "predicted (milliseconds)")
    with canvas(title, *labels, size=(6.2, 4.4)) as axes:
        axes.fill_between(ends, 0.8 * ends, 1.2 * ends, color="grey", alpha=0.15, label="± 20 %")
        axes.plot(ends, ends, color="grey", linewidth=1)
        for name, rows in table.groupby("algorithm", sort=False):
            style = {"color": COLOUR_OF[name], "marker": MARKER_OF[name], "linestyle": "none"}
            axes.plot(1000 * rows["measured"], 1000 * rows["predicted"], label=name, **style)
        for axis in ("x", "y"):
            axes.set(**{f"{axis}scale": "log", f"{axis}lim": ends})
            which = getattr(axes, f"{axis}axis")
            which.set_major_locator(LogLocator(subs=(1, 2, 5)))
            which.set_major_formatter("{x:g}")
            which.set_minor_formatter(NullFormatter())
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def all_reduce_bars(table: pd.DataFrame, title: str = "One all-reduce") -> None:
    """Milliseconds of each algorithm as bars; a line across each is what its bytes allow at best.

    table: columns algorithm, measured and bound (both in seconds), a row for each algorithm.
    """
    size, end = (7, 0.5 * len(table) + 1.6), 1000 * table["measured"].max()
    with canvas(title, "milliseconds", size=size) as axes:
        colours = [COLOUR_OF[name] for name in table["algorithm"]]
        bars = axes.barh(table["algorithm"], 1000 * table["measured"], color=colours, alpha=0.8)
        axes.bar_label(bars, [f"{1000 * one:,.0f} ms" for one in table["measured"]], padding=4)
        for row, bound in enumerate(table["bound"]):
            axes.plot([1000 * bound] * 2, [row - 0.45, row + 0.45], color="black", linewidth=2.5)
        bound = Line2D([], [], color="black", linewidth=2.5, label="bound: bytes over the link")
        axes.legend(handles=[bound], frameon=False, loc="lower right")
        axes.set_xlim(0, 1.15 * end)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)


def crossing(rates: list[float], seconds: list[float], level: float) -> float | None:
    """The rate below which a step takes longer than `level` seconds.

    rates: of the link, any unit; WIDE for one that is not shaped. seconds: of a step at each.
    Between two measured rates the logarithms are joined by a straight line.
    Returns None if no measured pair of rates has `level` between them.
    """
    known = sorted(zip(rates, seconds, strict=True), reverse=True)
    for (wider, quick), (narrower, slow) in itertools.pairwise(known):
        if quick <= level < slow:
            if math.isinf(wider):
                return narrower  # somewhere above: nothing narrower than wide was quick enough
            share = math.log(level / quick) / math.log(slow / quick)
            return wider * (narrower / wider) ** share
    return None


def crossing_in_words(rates: list[float], seconds: list[float], level: float) -> str:
    """What several instances are, measured against one, as their links narrow. See `crossing`."""
    rate = crossing(rates, seconds, level)
    if rate is None:
        slower = min(seconds) > level
        return "slower than one on every link" if slower else "no slower than one on any link"
    if rate in rates and seconds[rates.index(rate)] > level:  # somewhere between wide and this
        return f"slower than one already at {rate:.0f} Mbit/s"
    return f"slower than one below {rate:.0f} Mbit/s"


def step_time_by_link(table: pd.DataFrame, one_instance: Mapping[str, float]) -> None:
    """A step's time as the link narrows, and where several instances stop being worth it.

    table: columns name (such as "DDP"), mbit (Mbit/s; WIDE for a link that is not shaped) and
    step_seconds, of the job on several instances. one_instance: name -> seconds of the same step
    (the same global batch) on one instance, drawn as a dashed line.
    """
    rates = sorted({one for one in table["mbit"] if math.isfinite(one)}, reverse=True)
    wide = 2 * rates[0] if rates else 1  # where "wide" stands on the axis
    places = [wide, *rates] if np.isinf(table["mbit"]).any() else rates
    labels = ("link of each instance (Mbit/s), narrower to the right", "milliseconds for a step")
    with canvas("A step, as the link gets narrower", *labels, size=(7.5, 4.2)) as axes:
        for index, (name, rows) in enumerate(table.groupby("name", sort=False)):
            colour = COLOURS[index]
            rows = rows.sort_values("mbit", ascending=False)
            at = rows["mbit"].replace(WIDE, wide)
            axes.plot(at, 1000 * rows["step_seconds"], "o-", color=colour, label=name)
            level = one_instance[name]
            alone = {"color": colour, "linestyle": "--", "linewidth": 1.2}
            axes.axhline(1000 * level, label=f"{name}, one instance", **alone)
            _mark(axes, rows, list(at), level, colour)
        axes.set(xscale="log", yscale="log", xlim=(1.15 * places[0], places[-1] / 1.15))
        axes.xaxis.set_minor_locator(NullLocator())
        names = ["wide", *(f"{one:g}" for one in rates)] if places[0] == wide else None
        axes.set_xticks(places, names or [f"{one:g}" for one in rates])
        for which in ("major", "minor"):
            getattr(axes.yaxis, f"set_{which}_formatter")("{x:g}")
        axes.tick_params(axis="y", which="minor", labelsize=8)
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def _mark(axes: Axes, rows: pd.DataFrame, at: list[float], level: float, colour: str) -> None:
    """A circle where a line meets the dashed one; in words in the legend, where nothing is covered.

    at: where the rates of `rows` stand on the axis.
    """
    seconds = list(rows["step_seconds"])
    met = crossing(at, seconds, level)
    if met is not None:
        label = crossing_in_words(list(rows["mbit"]), seconds, level)
        style = {"color": colour, "markersize": 13, "fillstyle": "none", "mew": 2}
        axes.plot(met, 1000 * level, "o", label=label, linestyle="none", **style)


def by_placement(table: pd.DataFrame, title: str, measured: bool = True) -> None:
    """The same ranks on few or many instances: a group of bars for each placement.

    table: columns placement ("2 x 4": instances x ranks on each), algorithm, predicted and, if
    measured, measured (seconds). Without measurements the bars are the predictions, hatched.
    """
    placements = list(dict.fromkeys(table["placement"]))
    algorithms = list(dict.fromkeys(table["algorithm"]))
    width, value = 0.8 / len(algorithms), "measured" if measured else "predicted"
    label = "milliseconds" if measured else "milliseconds (a prediction, nothing measured)"
    with canvas(title, "instances x ranks on each", label, size=(7.5, 3.8)) as axes:
        for index, name in enumerate(algorithms):
            rows = table[table["algorithm"] == name].set_index("placement")
            at = [
                placements.index(one) + (index - (len(algorithms) - 1) / 2) * width
                for one in rows.index
            ]
            look = {"color": COLOUR_OF[name], "alpha": 0.85}
            if not measured:
                look = {"edgecolor": COLOUR_OF[name], "facecolor": "none", "hatch": "///"}
            axes.bar(at, 1000 * rows[value], 0.92 * width, label=name, **look)
            if measured:
                style = {"color": "black", "marker": "_", "linestyle": "none", "markersize": 14}
                axes.plot(at, 1000 * rows["predicted"], **style)
        axes.set_xticks(range(len(placements)), placements)
        axes.grid(axis="x", visible=False)
        handles = axes.get_legend_handles_labels()[0]
        if measured:
            handles.append(Line2D([], [], color="black", linewidth=2, label="predicted"))
        axes.legend(handles=handles, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


__all__ = [
    "WIDE",
    "all_reduce_bars",
    "by_placement",
    "crossing",
    "crossing_in_words",
    "predicted_against_measured",
    "step_time_by_link",
]
