"""Who did what when: bars in time."""

from __future__ import annotations

import pandas as pd

from workshop.plots.figures import HATCHES
from workshop.plots.look import COLOURS, canvas


def gantt(spans: pd.DataFrame, title: str, x: str) -> None:
    """Bars in time: a row for each value of `row`, a colour and a hatch for each `kind`.

    Args:
        spans: columns row, kind, start and length, the last two in the unit that x names. Rows and
            kinds are drawn in the order in which they appear; kinds are explained beside the axes.
        title, x: as canvas takes them.
    """
    rows, kinds = list(dict.fromkeys(spans["row"])), list(dict.fromkeys(spans["kind"]))
    totals = spans.pivot_table(index="row", columns="kind", values="length", aggfunc="sum")
    said = " ".join(
        f"{row}: {', '.join(f'{kind} {totals.loc[row, kind]:.3g}' for kind in kinds)}."
        for row in rows
    )
    alt = f"{title}. Bars in time; their lengths in all ({x}). {said}".replace("nan", "0")
    with canvas(title, x, size=(8, 0.42 * len(rows) + 1.3), alt=alt) as axes:
        for index, kind in enumerate(kinds):
            mine = spans[spans["kind"] == kind]
            look = {"color": COLOURS[index], "hatch": HATCHES[index], "edgecolor": "white"}
            y = mine["row"].map(rows.index)
            axes.barh(y, mine["length"], left=mine["start"], height=0.75, label=kind, **look)
        axes.set_yticks(range(len(rows)), rows)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
