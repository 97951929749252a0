"""Plots of collectives: a ring's steps, and seconds over sizes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

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
