"""How good a cost model is: lines through timed messages; predicted against measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from workshop.plots.figures import DASHES, MARKERS
from workshop.plots.look import COLOURS, canvas

MARGIN = 0.1  # of the dotted lines: 10 % more and less than measured


def message_lines(
    messages: Mapping[str, Mapping[int, float]],
    lines: Mapping[str, Callable[[float], float]],
    title: str,
) -> None:
    """Timed messages as marks, and the line that was fitted to each kind of them.

    messages: seconds by bytes, of each kind. lines: seconds as a function of bytes, by kind.
    """
    with canvas(title, "kB of a message", "milliseconds", size=(7.5, 3.6)) as axes:
        for number, (name, measured) in enumerate(messages.items()):
            least, most = min(measured), max(measured)
            sizes = [least * (most / least) ** (step / 60) for step in range(61)]
            colour = COLOURS[number]
            times = [1000 * lines[name](size) for size in sizes]
            kilobytes = [size / 1000 for size in sizes]
            axes.plot(kilobytes, times, DASHES[number % len(DASHES)], color=colour, label=name)
            marks = [1000 * seconds for seconds in measured.values()]
            axes.plot([size / 1000 for size in measured], marks, MARKERS[number], color=colour)
        axes.set(xscale="log", yscale="log")
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def predictions(points: pd.DataFrame, title: str) -> None:
    """Predicted against measured: on the line the model is right, between the dotted ones near it.

    points: columns kind, source ("measured", by this run, or "recorded"), measured and predicted
    (seconds). A kind has a colour and a mark; what was recorded is pale.
    """
    kinds = list(dict.fromkeys(points["kind"]))
    alt = f"{title}. A dot for each of {len(points)} points, in milliseconds."
    with canvas(title, "measured, ms", "predicted, ms", size=(7.5, 4.8), alt=alt) as axes:
        both = 1000 * points[["measured", "predicted"]]
        ends = [both.min().min() / 1.3, both.max().max() * 1.3]
        for factor, style in ((1, "-"), (1 - MARGIN, ":"), (1 + MARGIN, ":")):
            label = f"{MARGIN:.0%} more, or less" if factor < 1 else None
            axes.plot(ends, [factor * end for end in ends], style, color="black", label=label)
        for (source, kind), rows in points.groupby(["source", "kind"], sort=False):
            number = kinds.index(kind)
            look: dict[str, Any] = {"color": COLOURS[number], "linestyle": "none"}
            look |= {"alpha": 0.3} if source == "recorded" else {"markeredgecolor": "black"}
            name = "this run" if source == "measured" else source
            dots = (1000 * rows["measured"], 1000 * rows["predicted"])
            axes.plot(*dots, MARKERS[number], label=f"{kind}, {name}", **look)
        axes.set(xscale="log", yscale="log")
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
