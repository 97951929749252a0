"""The two pictures that run through the lessons: what a step consists of, and when ranks pay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.ticker import PercentFormatter

from workshop.plots.figures import HATCHES, in_words, titled
from workshop.plots.look import COLOURS, canvas

MARKERS = "o^svDP"  # each can be filled or open
BACKWARD = 2 / 3  # of a step's computing: backward has about twice the operations of forward


def stacked_bars(
    parts: pd.DataFrame,
    title: str,
    x: str = "ms per step",
    spread: pd.DataFrame | None = None,
    source: str = "measured",
) -> None:
    """A bar for each configuration, its parts one after the other: those of a step, or of memory.

    Args:
        parts: a row for each configuration, a column for each part, in the unit that x names; of
            a step: compute, wait, exposed communication, in ms.
        title: the finding.
        spread: columns lowest and highest, in the same unit, and perhaps median, drawn as a dot;
            their name, if any, is explained, and is "range of rounds" by default.
        source: as bar_chart takes it.
    """
    title = titled(title, source)
    alt = f"{title} ({x}). {in_words(parts)}"
    names = [str(name) for name in parts.index]
    with canvas(title, x, size=(7.5, 0.5 * len(parts) + 1.5), alt=alt) as axes:
        left = np.zeros(len(parts))
        for index, part in enumerate(parts):
            look: dict[str, Any] = {"color": COLOURS[index], "hatch": HATCHES[index]}
            axes.barh(names, parts[part], left=left, label=part, edgecolor="white", **look)
            left += parts[part].to_numpy()
        if spread is not None:
            middle = spread.get("median", (spread["lowest"] + spread["highest"]) / 2)
            reach = [middle - spread["lowest"], spread["highest"] - middle]
            whiskers: dict[str, Any] = {"fmt": "none", "ecolor": "black", "capsize": 3}
            label = spread.columns.name or "range of rounds"
            if "median" in spread:
                whiskers |= {"fmt": "ko", "mec": "white"}
                label += "; dot: median"
            axes.errorbar(middle, names, xerr=reach, label=label, **whiskers)
        axes.set(xlim=(0, None), ylim=(len(parts) - 0.4, -0.6))
        axes.grid(axis="y", visible=False)
        below = -0.5 / (0.5 * len(parts) + 0.4)  # half an inch, in heights of the axes
        axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, below), ncols=4)


def scaling_map(dots: pd.DataFrame, title: str) -> None:
    """Which share of the ceiling ranks reach, against r: one curve for all lessons.

    Args:
        dots: a row for each configuration. Columns: r, exchange / compute; share, of the ceiling, 0
            to 1; label, drawn beside the dot, such as "2 ranks, 28 x 28: 1.8 times"; source:
            measured (filled), recorded (pale) or computed (open); and low and high of share, NaN
            where there is no range. r_low and r_high, of r, may be there too.
        title: the finding.
    """
    alt = f"{title}. The curve is 1 / (1 + r). " + " ".join(
        f"{dot['label']} ({dot['source']}): r {dot['r']:.2g}, {percent:.0f} % of the ceiling."
        for percent, (_, dot) in zip(100 * dots["share"], dots.iterrows(), strict=True)
    )
    low_r, high_r = min(0.01, dots["r"].min() / 2), max(10.0, 3 * dots["r"].max())
    r = np.geomspace(low_r, high_r, 300)
    curve = 1 / (1 + r)
    x = "r = exchange / compute"
    y = "share of the ceiling"
    with canvas(title, x, y, size=(8, 4.2), alt=alt) as axes:
        axes.set_xscale("log")
        axes.plot(r, curve, color="black", label="nothing hidden: 1 / (1 + r)")
        hidden = 1 / (1 + np.maximum(0, r - BACKWARD))
        axes.plot(r, hidden, "--", color="grey", label="overlapped with backward, at best")
        for index, (_, dot) in enumerate(dots.iterrows()):
            colour = COLOURS[index % len(COLOURS)]
            faces = {"measured": colour, "recorded": f"{colour}55", "computed": "white"}
            if pd.notna(dot["low"]):
                axes.plot([dot["r"]] * 2, [dot["low"], dot["high"]], color=colour, linewidth=1)
            if pd.notna(dot.get("r_low")):
                axes.plot(
                    [dot["r_low"], dot["r_high"]], [dot["share"]] * 2, color=colour, linewidth=1
                )
            mark = MARKERS[index % len(MARKERS)]
            style: dict[str, Any] = {"markerfacecolor": faces[dot["source"]], "linestyle": "none"}
            name = dot["label"] + ("" if dot["source"] == "measured" else f" ({dot['source']})")
            axes.plot(dot["r"], dot["share"], mark, color=colour, markersize=8, label=name, **style)
        if dots["low"].notna().any():
            mark = "+" if "r_low" in dots else "|"
            axes.plot([], [], mark, color="black", markersize=12, label="range of rounds")
        axes.set_ylim(0, 1.05 * max(1.1, dots[["share", "high"]].max(axis=None)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1, symbol=" %"))
        axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)
