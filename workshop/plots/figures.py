"""Figures for many subjects: bars with their numbers, lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from workshop.plots.look import COLOURS, canvas, legend_beside

# One for each series, so that a figure can be read without its colours.
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo")
DASHES = ("-", "--", ":", "-.")
MARKERS = "o^sxvDP"
# Where numbers are from -> how their bars look, in every figure: measured by this run, recorded on
# another machine, or computed.
SOURCES = ("measured", "recorded", "computed")


def _look(source: str, colour: str, hatch: str = "") -> dict[str, Any]:
    """How a bar looks. Raises ValueError for an unknown source."""
    if source == "measured":
        return {"facecolor": colour, "edgecolor": "white", "hatch": hatch, "alpha": 0.85}
    if source == "recorded":
        pale = to_rgba(colour, 0.3)
        return {"facecolor": pale, "edgecolor": colour, "hatch": hatch, "linestyle": "--"}
    if source == "computed":
        return {"facecolor": "none", "edgecolor": colour, "hatch": hatch, "linewidth": 1.5}
    raise ValueError(f"source is {source!r}; expected one of {', '.join(SOURCES)}.")


def titled(title: str, source: str) -> str:
    """A title that says where the numbers are from, unless they are of this run."""
    names = {"recorded": "recorded elsewhere"}
    return title if source == "measured" else f"{title} ({names.get(source, source)})"


def bar_chart(
    values: pd.Series,
    title: str,
    x: str,
    texts: str = "{:,.0f}",
    spread: pd.DataFrame | None = None,
    bounds: pd.Series | None = None,
    rivals: pd.Series | None = None,
    source: str = "measured",
    colour: str = "",
) -> None:
    """A bar for each value, named by the index; its text stands at its end.

    Args:
        values: numbers above 0.
        title, x: as canvas takes them; x names the unit.
        texts: the format of a value.
        spread: columns lowest and highest, in the unit of `values`, drawn as a range.
        bounds: a black line across each bar, in the unit of `values`; its name is explained.
        rivals: the same as an outlined diamond; only beside `bounds`.
        source: one of SOURCES; the bars' look and the title say which.
        colour: of all bars; by default each has its own.
    """
    title, names = titled(title, source), list(map(str, values.index))
    labels = [texts.format(value) for value in values]
    alt = f"{title} ({x}). Bars: {_pairs(names, labels)}."
    ends = np.array(values if spread is None else spread["highest"])
    if bounds is not None:
        ends = np.maximum(ends, np.array(bounds))
        alt += f" {bounds.name}: {_pairs(names, [f'{bound:.4g}' for bound in bounds])}."
    if rivals is not None:
        alt += f" {rivals.name}: {_pairs(names, [f'{rival:.4g}' for rival in rivals])}."
    with canvas(title, x, size=(7.5, 0.5 * len(values) + 1.4), alt=alt) as axes:
        for row, (name, value) in enumerate(zip(names, values, strict=True)):
            axes.barh(name, value, **_look(source, colour or COLOURS[row % len(COLOURS)]))
            axes.annotate(
                labels[row], (ends[row], row), (5, 0), textcoords="offset points", va="center"
            )
        if spread is not None:
            reach = [values - spread["lowest"], spread["highest"] - values]
            axes.errorbar(values, names, xerr=reach, fmt="none", ecolor="black", capsize=3)
        if bounds is not None:
            explained = [_black_lines(axes, bounds, range(len(bounds)), 0.45, str(bounds.name))]
            if rivals is not None:
                open_mark: dict[str, Any] = {"color": "black", "markerfacecolor": "white"}
                explained += axes.plot(rivals, names, "D", label=str(rivals.name), **open_mark)
            below = (0.5, -0.55 / (0.5 * len(values) + 0.3))  # the axis' label, of the axes' height
            axes.legend(
                handles=explained, frameon=False, loc="upper center", bbox_to_anchor=below, ncols=2
            )
        axes.set_xlim(0, 1.3 * max(ends))
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)


def grouped_bar_chart(
    table: pd.DataFrame,
    title: str,
    x: str,
    bounds: pd.DataFrame | None = None,
    spread: Sequence[pd.DataFrame] = (),
    source: str = "measured",
) -> None:
    """A group of bars for each row of a table, a bar for each column; NaN leaves a gap.

    bounds: a black line across each bar, of the table's shape and unit; explained as "computed".
    spread: the lowest and the highest values, two tables of that shape and unit, drawn as ranges.
    The rest is as for `bar_chart`.
    """
    title, height = titled(title, source), 0.8 / len(table.columns)
    alt = f"{title} ({x}). {in_words(table)}"
    if bounds is not None:
        alt += f" computed: {in_words(bounds)}"
    with canvas(title, x, size=(7.5, 0.24 * table.size + 1.4), alt=alt) as axes:
        handles: list[Any] = []
        for index, name in enumerate(table):
            at = np.arange(len(table)) + (index - (len(table.columns) - 1) / 2) * height
            look = _look(source, COLOURS[index], HATCHES[index])
            handles.append(axes.barh(at, table[name], 0.92 * height, label=name, **look))
            if spread:
                low, high = (edge[name] for edge in spread)
                reach = [table[name] - low, high - table[name]]
                axes.errorbar(table[name], at, xerr=reach, fmt="none", ecolor="black", capsize=2)
            if bounds is not None:
                line = _black_lines(axes, bounds[name], at, height / 2, "computed")
        axes.set_yticks(range(len(table)), list(map(str, table.index)))
        axes.set_ylabel(table.index.name or "")
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        legend_beside(axes, handles if bounds is None else [*handles, line])


def _black_lines(axes: Axes, at: Iterable[float], rows: Iterable[float], half: float, name: str):
    """A line across each bar; returns what the legend shows for them."""
    for x, y in zip(at, rows, strict=True):
        axes.plot([x, x], [y - half, y + half], color="black", linewidth=2.5)
    return Line2D([], [], label=name, color="black", linewidth=2.5)


def lines(
    curves: Mapping[str, pd.Series], title: str, x: str, y: str, top: float | None = None
) -> None:
    """A line for each curve, from its index (to the right) to its values (up), from 0 on.

    top: where the picture ends, for curves that run away.
    """
    with canvas(title, x, y, size=(8, 3.6)) as axes:
        for index, (name, curve) in enumerate(curves.items()):
            colour, dashes = COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)]
            axes.plot(curve.index, curve, dashes, color=colour, label=name)
        axes.set_ylim(0, top)
        if all(pd.api.types.is_integer_dtype(curve.index) for curve in curves.values()):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        legend_beside(axes)


def _pairs(names: list[str], texts: list[str]) -> str:
    return "; ".join(f"{name}: {text}" for name, text in zip(names, texts, strict=True))


def in_words(table: pd.DataFrame) -> str:
    """Each number of a table, by its row."""
    return " ".join(
        f"{group}: {', '.join(f'{name} {value:.4g}' for name, value in row.dropna().items())}."
        for group, row in table.iterrows()
    )
