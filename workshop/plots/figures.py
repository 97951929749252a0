"""Figures for many subjects: bars with their numbers, lines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from workshop.plots.look import COLOURS, canvas

# One for each series, so that a figure can be read without its colours.
HATCHES = ("", "//", "..", "xx", "\\\\", "++", "oo")
DASHES = ("-", "--", ":", "-.")
MARKERS = "o^sxvDP"
# Where numbers are from -> how their bars look, in every figure: measured by this run, recorded on
# another machine, or computed.
SOURCES = ("measured", "recorded", "computed")


def _look(source: str, colour: str, hatch: str = "") -> dict:
    """How a bar looks. Raises ValueError for an unknown source."""
    if source == "measured":
        return {"facecolor": colour, "edgecolor": "white", "hatch": hatch, "alpha": 0.85}
    if source == "recorded":
        pale = to_rgba(colour, 0.3)
        return {"facecolor": pale, "edgecolor": colour, "hatch": hatch, "linestyle": "--"}
    if source == "computed":
        return {"facecolor": "none", "edgecolor": colour, "hatch": hatch, "linewidth": 1.5}
    raise ValueError(f"source is {source!r}; expected one of {', '.join(SOURCES)}.")


def _titled(title: str, source: str) -> str:
    """A title that says where the numbers are from, unless they are of this run."""
    names = {"recorded": "recorded elsewhere"}
    return title if source == "measured" else f"{title} ({names.get(source, source)})"


def bars(
    values: pd.Series | pd.DataFrame,
    title: str,
    x: str,
    texts: str | Sequence[str] = "{:,.0f}",
    spread: pd.DataFrame | None = None,
    bounds: pd.Series | pd.DataFrame | None = None,
    kinds: pd.Series | None = None,
    source: str = "measured",
) -> None:
    """A bar for each row of `values`, named by its index; what each says stands at its end.

    Args:
        values: numbers above 0. A table gives a group of bars for each row, one for each column;
            the legend explains the columns, and what is NaN leaves a gap.
        title, x: as canvas takes them; x names the unit.
        texts: one for each bar, or a format for its value. Bars of a table have none.
        spread: columns lowest and highest, in the unit of `values`, drawn as a range.
        bounds: a black line across each bar, of the same shape and unit as `values`; the name of
            a Series is explained, of a table "computed".
        kinds: bars of the same kind have one colour and hatch; its name and values are explained.
        source: one of SOURCES; the bars' look and the title say which.
    """
    title = _titled(title, source)
    if isinstance(values, pd.DataFrame):
        _groups(values, title, x, bounds, source)
        return
    names, ends = list(map(str, values.index)), values if spread is None else spread["highest"]
    ends = list(ends if bounds is None else np.maximum(list(ends), list(bounds)))
    if isinstance(texts, str):
        texts = [texts.format(value) for value in values]
    said = "; ".join(f"{name}: {text}" for name, text in zip(names, texts, strict=True))
    alt = f"{title} ({x}). Bars: {said}."
    if bounds is not None:
        said = "; ".join(f"{name}: {bound:.4g}" for name, bound in zip(names, bounds, strict=True))
        alt += f" {bounds.name}: {said}."
    styles = pd.Series(range(len(values)) if kinds is None else pd.factorize(kinds)[0])
    styles %= len(COLOURS)
    with canvas(title, x, size=(7.5, 0.5 * len(values) + 1.4), alt=alt) as axes:
        drawn = axes.barh(names, values)
        for bar, style in zip(drawn, styles, strict=True):
            bar.set(**_look(source, COLOURS[style], HATCHES[style] if kinds is not None else ""))
        if spread is not None:
            reach = [values - spread["lowest"], spread["highest"] - values]
            axes.errorbar(values, names, xerr=reach, fmt="none", ecolor="black", capsize=3)
        for row, (end, text) in enumerate(zip(ends, texts, strict=True)):
            axes.annotate(text, (end, row), (5, 0), textcoords="offset points", va="center")
        handles = []
        if kinds is not None:
            for style, kind in enumerate(pd.unique(kinds)):
                look = _look(source, COLOURS[style], HATCHES[style])
                handles.append(Patch(label=f"{kinds.name} {kind}", **look))
        if bounds is not None:
            handles.append(_black_lines(axes, bounds, range(len(bounds)), 0.45, str(bounds.name)))
        axes.set_xlim(0, 1.3 * max(ends))
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        _legend(axes, handles)


def _groups(
    table: pd.DataFrame, title: str, x: str, bounds: pd.DataFrame | None, source: str
) -> None:
    """A group of bars for each row of a table."""
    height = 0.8 / len(table.columns)
    alt = f"{title} ({x}). {_in_words(table)}"
    if bounds is not None:
        alt += f" computed: {_in_words(bounds)}"
    with canvas(title, x, size=(7.5, 0.24 * table.size + 1.4), alt=alt) as axes:
        handles = []
        for index, name in enumerate(table):
            at = np.arange(len(table)) + (index - (len(table.columns) - 1) / 2) * height
            look = _look(source, COLOURS[index], HATCHES[index])
            handles.append(axes.barh(at, table[name], 0.92 * height, label=name, **look))
            if bounds is not None:
                line = _black_lines(axes, bounds[name], at, height / 2, "computed")
        axes.set_yticks(range(len(table)), list(map(str, table.index)))
        axes.set_ylabel(table.index.name or "")
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        _legend(axes, handles if bounds is None else [*handles, line])


def _black_lines(axes: Axes, at: Iterable[float], rows: Iterable[float], half: float, name: str):
    """A line across each bar; returns what the legend shows for them."""
    look = {"color": "black", "linewidth": 2.5}
    for x, y in zip(at, rows, strict=True):
        axes.plot([x, x], [y - half, y + half], **look)
    return Line2D([], [], label=name, **look)


def lines(
    curves: Mapping[str, pd.Series],
    title: str,
    x: str,
    y: str,
    points: Collection[str] = (),
    top: float | None = None,
) -> None:
    """A line for each curve, from its index (to the right) to its values (up), from 0 on.

    points: names of curves that are drawn as points, because nothing lies between them. top: where
    the picture ends, for curves that run away.
    """
    with canvas(title, x, y, size=(8, 3.6)) as axes:
        for index, (name, curve) in enumerate(curves.items()):
            style = {"linestyle": DASHES[index % len(DASHES)]}
            if name in points:
                style = {"linestyle": "none", "marker": MARKERS[index % len(MARKERS)]}
            colour = COLOURS[index % len(COLOURS)]
            axes.plot(curve.index, curve, color=colour, label=name, **style)
        axes.set_ylim(0, top)
        if all(pd.api.types.is_integer_dtype(curve.index) for curve in curves.values()):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _legend(axes, axes.get_legend_handles_labels()[0])


def _in_words(table: pd.DataFrame) -> str:
    """Each number of a table, by its row."""
    return " ".join(
        f"{group}: {', '.join(f'{name} {value:.4g}' for name, value in row.dropna().items())}."
        for group, row in table.iterrows()
    )


def _legend(axes: Axes, handles: list) -> None:
    """Beside the axes, where it covers nothing."""
    if handles:
        axes.legend(handles=handles, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
