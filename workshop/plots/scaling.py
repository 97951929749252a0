"""Plots of speed-up: what was measured, and what a formula says beyond it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workshop.plots.look import COLOURS, canvas

if TYPE_CHECKING:
    import pandas as pd

    from workshop.measure.scaling import StepCost


def speedup_bars(table: pd.DataFrame) -> None:
    """Samples per second as bars, with the range of the repeats, and the efficiency beside each.

    table: what workshop.measure.scaling.speedups returned.
    """
    middle = table["samples per second"]
    spread = [middle - table["lowest"], table["highest"] - middle]
    size = (7, 0.5 * len(table) + 1.5)
    with canvas("Samples per second", "samples per second, median and range", size=size) as axes:
        axes.barh(
            table.index, middle, color=COLOURS[: len(table)], xerr=spread, error_kw={"capsize": 3}
        )
        end = table["highest"].max()
        for row, (_, one) in enumerate(table.iterrows()):
            said = f"{one['speed-up']:.2f} x, efficiency {one['efficiency']:.0%}"
            axes.text(one["highest"] + 0.02 * end, row, said, va="center")
        axes.set_xlim(0, end * 1.45)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)


def predicted_speedup(costs: dict[str, StepCost], measured: dict[str, float], most: int) -> None:
    """Speed-up against ranks: lines are a formula, filled points were measured on 2 ranks.

    Args:
        costs: name -> what a step costs.
        measured: name -> the measured speed-up of 2 ranks.
        most: how far the lines go, ranks.
    """
    ranks = [2**power for power in range(most.bit_length()) if 2**power <= most]
    labels = ("ranks", "speed-up over 1 rank")
    with canvas("Lines: formula. Points: measured.", *labels, size=(7, 4)) as axes:
        axes.plot(ranks, ranks, color="grey", linestyle=":", label="ideal: N ranks, N times")
        for colour, (name, cost) in zip(COLOURS, costs.items(), strict=False):
            speed = [cost.speedup(one) for one in ranks]
            axes.plot(ranks, speed, color=colour, linestyle="--", label=f"{name}, formula")
            points = {"color": colour, "linestyle": "none", "marker": "o", "markersize": 8}
            axes.plot([1, 2], [1, measured[name]], label=f"{name}, measured", **points)
        axes.axvspan(2.4, most * 1.1, color="grey", alpha=0.1)
        axes.text(
            2.6,
            0.04,
            "formula only: nothing measured here",
            va="bottom",
            color="dimgrey",
            transform=axes.get_xaxis_transform(),
        )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_xticks(ranks, ranks)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlim(0.9, most * 1.1)
        axes.legend(frameon=False, loc="upper left", fontsize=9)


def loss_by_update(curves: dict[str, list[float]], title: str) -> None:
    """The loss after each update, a line for each way to train."""
    with canvas(title, "updates of the weights", "loss on all training images") as axes:
        for at, (name, values) in enumerate(curves.items()):
            style = {"color": COLOURS[at % len(COLOURS)], "linestyle": ("-", "--")[at % 2]}
            axes.plot(range(1, len(values) + 1), values, label=name, **style)
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)


def accuracy_by_setting(results: pd.DataFrame) -> None:
    """Accuracy after equal epochs: a point for each seed, a bar at the median.

    results: columns "setting", "accuracy" (0 to 1) and "updates", a row for each run.
    """
    names = list(dict.fromkeys(results["setting"]))
    size = (7, 0.5 * len(names) + 1.5)
    label = "test images right, %; a point for each seed, a line at the median"
    with canvas("Accuracy after equally many epochs", label, size=size) as axes:
        for row, name in enumerate(names):
            found = 100 * results.loc[results["setting"] == name, "accuracy"]
            colour = COLOURS[row % len(COLOURS)]
            axes.plot(found, [row] * len(found), "o", color=colour, alpha=0.6)
            axes.plot([found.median()] * 2, [row - 0.3, row + 0.3], color=colour, linewidth=3)
        axes.set_yticks(range(len(names)), names)
        axes.set_xlim(0, 103)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
