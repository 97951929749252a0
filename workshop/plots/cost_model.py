"""How good a cost model is: lines through timed messages; the errors of its predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from workshop.plots.figures import DASHES, MARKERS
from workshop.plots.look import COLOURS, canvas, legend_beside

MARGIN = 0.1  # of the grey band: 10 % more and less than measured


def message_lines(
    messages: Mapping[str, Mapping[int, float]],
    lines: Mapping[str, Callable[[float], float]],
    title: str,
) -> None:
    """Timed messages as marks, and the line that was fitted to each kind of them.

    messages: seconds by bytes, of each kind. lines: seconds as a function of bytes, by kind.
    """
    with canvas(title, "kB of a message", "a message takes, ms", size=(7.5, 3.6)) as axes:
        for number, (name, measured) in enumerate(messages.items()):
            least, most = min(measured), max(measured)
            sizes = [least * (most / least) ** (step / 60) for step in range(61)]
            colour = COLOURS[number]
            times = [1000 * lines[name](size) for size in sizes]
            kilobytes = [size / 1000 for size in sizes]
            dashes, mark = DASHES[number % len(DASHES)], MARKERS[number]
            axes.plot(kilobytes, times, dashes, color=colour)
            marks = [1000 * seconds for seconds in measured.values()]
            axes.plot([size / 1000 for size in measured], marks, mark, color=colour)
            axes.plot([], [], mark + dashes, color=colour, label=name)  # the legend shows both
        axes.set(xscale="log", yscale="log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter("{x:g}")
        legend_beside(axes)


def errors(points: pd.DataFrame, title: str, worst: str = "") -> None:
    """The error of each prediction, in per cent, by how long it takes: above 0 is too long.

    points: columns kind, source ("measured", by this run, or "recorded"), measured (seconds) and
    error (of 1). A kind has a colour and a mark; what was recorded is pale. worst: written beside
    the point that is farthest from 0.
    """
    kinds = list(dict.fromkeys(points["kind"]))
    off, ms = 100 * points["error"], 1000 * points["measured"]
    alt = f"{title}. A dot for each of {len(points)} points, from {off.min():.0f} to "
    alt += f"{off.max():.0f} %, of {ms.min():.0f} to {ms.max():.0f} ms."
    with canvas(title, "measured, ms", "error, %", size=(7.5, 3.8), alt=alt) as axes:
        reach = 100 * MARGIN
        axes.axhspan(-reach, reach, color="0.9", zorder=0, label=f"at most {reach:g} %")
        axes.axhline(0, color="black", linewidth=1)
        for (source, kind), rows in points.groupby(["source", "kind"], sort=False):
            number = kinds.index(kind)
            look: dict[str, Any] = {"color": COLOURS[number], "linestyle": "none"}
            look |= {"alpha": 0.4} if source == "recorded" else {"markeredgecolor": "black"}
            name = "this run" if source == "measured" else source
            dots = (1000 * rows["measured"], 100 * rows["error"])
            axes.plot(*dots, MARKERS[number], label=f"{kind}, {name}", **look)
        if worst:
            farthest = off.abs().to_numpy().argmax()
            at = (ms.iloc[farthest], off.iloc[farthest])
            axes.annotate(worst, at, (8, 0), textcoords="offset points", va="center", fontsize=9)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
        legend_beside(axes)
