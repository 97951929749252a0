"""Who did what when: bars in time."""

from __future__ import annotations

from typing import Any

import pandas as pd

from workshop.plots.figures import HATCHES
from workshop.plots.look import COLOURS, canvas, legend_beside


def gantt(spans: pd.DataFrame, title: str, x: str) -> None:
    """Bars in time: a row for each value of `row`, a colour and a hatch for each `kind`.

    Bars of one row and kind that overlap share the row's height.

    Args:
        spans: columns row, kind, start and length, the last two in the unit that x names. Rows and
            kinds are drawn in the order in which they appear; kinds are explained beside the axes.
        title, x: as canvas takes them.
    """
    rows, kinds = list(dict.fromkeys(spans["row"])), list(dict.fromkeys(spans["kind"]))
    size = (8, 0.42 * len(rows) + 1.3)
    with canvas(title, x, size=size, alt=_in_words(spans, title, x)) as axes:
        for (row, kind), bars in spans.groupby(["row", "kind"], sort=False):
            bars, style = bars.sort_values("start"), kinds.index(kind)
            lanes = _lanes(bars)
            height = 0.75 / (max(lanes) + 1)
            y = [rows.index(row) - 0.375 + height * (lane + 0.5) for lane in lanes]
            look: dict[str, Any] = {"color": COLOURS[style], "hatch": HATCHES[style]}
            axes.barh(
                y,
                bars["length"],
                left=bars["start"],
                height=height,
                label=kind,
                edgecolor="white",
                **look,
            )
        axes.set_yticks(range(len(rows)), rows)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        handles, names = axes.get_legend_handles_labels()
        explained = dict(zip(names, handles, strict=True))
        legend_beside(axes, [explained[kind] for kind in kinds])


def _lanes(spans: pd.DataFrame) -> list[int]:
    """For each span, in the order of their starts, the first lane that is free by then."""
    free: list[float] = []
    lanes = []
    for start, length in zip(spans["start"], spans["length"], strict=True):
        done = start + 1e-6 * length  # what ends and what begins may differ by rounding
        lane = next((lane for lane, end in enumerate(free) if end <= done), len(free))
        free[lane : lane + 1] = [start + length]
        lanes.append(lane)
    return lanes


def _in_words(spans: pd.DataFrame, title: str, x: str) -> str:
    sentences = []
    for row, of_row in spans.groupby("row", sort=False):
        each = []
        for kind, bars in of_row.groupby("kind", sort=False):
            start, end = bars["start"].min(), (bars["start"] + bars["length"]).max()
            each.append(f"{kind} {bars['length'].sum():.3g}, from {start:.3g} to {end:.3g}")
        sentences.append(f"{row}: {'; '.join(each)}.")
    return f"{title}. Bars in time; their lengths in all ({x}). {' '.join(sentences)}"
