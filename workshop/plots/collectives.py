"""Plots of collectives: a ring's steps, seconds by size, by bandwidth and by placement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from workshop.measure.scaling import UNSHAPED, break_even, break_even_in_words
from workshop.plots.look import COLOURS, canvas

COLOUR_OF = {"naive": COLOURS[3], "tree": COLOURS[1], "ring": COLOURS[0], "gloo": COLOURS[2]}
COLOUR_OF |= {"blind_ring": COLOURS[4], "two_tier": COLOURS[5], "herring": COLOURS[6]}
MARKER_OF = {"naive": "s", "tree": "^", "ring": "o", "gloo": "x"}
MARKER_OF |= {"blind_ring": "v", "two_tier": "D", "herring": "P"}


def ring_steps(recorded: Sequence[np.ndarray]) -> None:
    """What every rank held after every step of a ring all-reduce.

    recorded: for each rank an array (steps + 1, world_size), a number for each chunk, in which
    rank r's own contribution was 10 to the power r: digits that are 1 name the ranks in a sum.
    """
    world_size, frames = recorded[0].shape[1], len(recorded[0])
    across, width, height = world_size, 1.25 * world_size + 1.3, world_size + 1.3
    down = -(-frames // across)
    size = (9, 9 * down * height / (across * width))
    with canvas("A ring all-reduce, step by step", "", size=size) as axes:
        for frame in range(frames):
            left, top = (frame % across) * width, -(frame // across) * height
            held = np.array([one[frame] for one in recorded])
            _frame(axes, held, left, top, _step_name(frame, world_size))
        axes.set_xlim(-1.2, across * width - 0.9)
        axes.set_ylim(-down * height + 1, 1.1)
        axes.set_axis_off()


def _step_name(frame: int, world_size: int) -> str:
    if frame == 0:
        return "before"
    phase = "reduce-scatter" if frame < world_size else "all-gather"
    return f"step {frame}: {phase}"


def _frame(axes: Axes, held: np.ndarray, left: float, top: float, title: str) -> None:
    """One table, a row for each rank, a column for each chunk."""
    world_size = len(held)
    axes.text(left, top + 0.55, title, fontsize=9, fontweight="bold")
    for rank, row in enumerate(held):
        y = top - rank
        axes.text(left - 0.15, y - 0.3, f"rank {rank}", fontsize=7, ha="right", va="center")
        for chunk, value in enumerate(row):
            digits = f"{int(value):0{world_size}d}"
            ready = digits.count("1") == world_size
            colour = COLOURS[2] if ready else COLOURS[0]
            strength = 0.55 if ready else 0.1 + 0.4 * digits.count("1") / world_size
            place = (left + 1.25 * chunk, y - 0.75)
            box = {"facecolor": colour, "alpha": strength, "edgecolor": "white", "linewidth": 1.5}
            axes.add_patch(Rectangle(place, 1.25, 0.9, **box))
            style = {"fontsize": 8, "family": "monospace", "ha": "center", "va": "center"}
            axes.text(place[0] + 0.625, y - 0.3, digits, **style)


def seconds_by_size(table: pd.DataFrame, world_size: int) -> None:
    """Measured seconds as dots, the model's as lines, over the bytes of the tensor.

    table: columns bytes, algorithm, measured and predicted (both in seconds; predicted may
    be missing).
    """
    title = f"All-reduce on {world_size} ranks: measured (marks), the model (lines)"
    labels = ("size of the tensor (bytes)", "milliseconds")
    with canvas(title, *labels, size=(7.5, 4.6)) as axes:
        for name, rows in table.groupby("algorithm", sort=False):
            style = {"color": COLOUR_OF[name], "label": name}
            marks = {"marker": MARKER_OF[name], "linestyle": "none", "markersize": 7}
            axes.plot(rows["bytes"], 1000 * rows["measured"], **style, **marks)
            if rows["predicted"].notna().all():
                axes.plot(rows["bytes"], 1000 * rows["predicted"], color=COLOUR_OF[name])
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.legend(frameon=False)


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


def step_time_by_bandwidth(table: pd.DataFrame, one_instance: Mapping[str, float]) -> None:
    """A step's time as the bandwidth falls, and where several instances stop being worth it.

    table: columns name (such as "DDP"), mbit (Mbit/s; UNSHAPED for a link that is not shaped) and
    step_seconds, of the job on several instances. one_instance: name -> seconds of the same step
    (the same global batch) on one instance, drawn as a dashed line.
    """
    rates = sorted({one for one in table["mbit"] if math.isfinite(one)}, reverse=True)
    unshaped = 2 * rates[0] if rates else 1  # its place on the axis
    places = [unshaped, *rates] if np.isinf(table["mbit"]).any() else rates
    labels = (
        "bandwidth of each instance (Mbit/s), falling to the right",
        "milliseconds for a step",
    )
    with canvas("A step, as the bandwidth falls", *labels, size=(7.5, 4.2)) as axes:
        for index, (name, rows) in enumerate(table.groupby("name", sort=False)):
            colour = COLOURS[index]
            rows = rows.sort_values("mbit", ascending=False)
            at = rows["mbit"].replace(UNSHAPED, unshaped)
            axes.plot(at, 1000 * rows["step_seconds"], "o-", color=colour, label=name)
            level = one_instance[name]
            alone = {"color": colour, "linestyle": "--", "linewidth": 1.2}
            axes.axhline(1000 * level, label=f"{name}, one instance", **alone)
            _mark(axes, rows, list(at), level, colour)
        axes.set(xscale="log", yscale="log", xlim=(1.15 * places[0], places[-1] / 1.15))
        axes.xaxis.set_minor_locator(NullLocator())
        names = ["unshaped", *(f"{one:g}" for one in rates)] if places[0] == unshaped else None
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
    met = break_even(at, seconds, level)
    if met is not None:
        label = break_even_in_words(list(rows["mbit"]), seconds, level)
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
