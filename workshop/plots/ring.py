"""The picture of a ring all-reduce: what every rank holds after every step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, Rectangle

from workshop.plots.look import COLOURS, canvas


def ring_steps(recorded: Sequence[np.ndarray]) -> None:
    """What every rank held after every step of a ring all-reduce.

    recorded: for each rank an array (steps + 1, world_size), a number for each chunk, in which
    rank r's own contribution was 10 to the power r: digits that are 1 name the ranks in a sum.

    An arrow and a black frame mark what arrived in a step, from the rank above (at rank 0: from the
    last); complete sums are bold and green. The last place shows who sends to whom.
    """
    world_size, frames = recorded[0].shape[1], len(recorded[0])
    across, width, height = 3, 1.25 * world_size + 1.3, world_size + 2.2
    down = -(-(frames + 1) // across)
    size = (7.2, 7.2 * (down * height + 0.2) / (across * width))
    everything = (10**world_size - 1) // 9  # a digit for each rank
    ready = sum(int((ranks[-1] == everything).sum()) for ranks in recorded)
    alt = (
        f"A ring all-reduce of {world_size} ranks in {frames - 1} steps: a table for each step, a "
        f"row for each rank, a column for each chunk. In each step a chunk arrives at each rank, "
        f"from the rank before it; rank 0 receives from rank {world_size - 1}. After the last step "
        f"{ready} of {world_size**2} chunks hold the contributions of all ranks."
    )
    title = f"Ring all-reduce: {ready} of {world_size**2} chunks complete after {frames - 1} steps"
    with canvas(title, "", size=size, alt=alt) as axes:
        for frame in range(frames):
            left, top = (frame % across) * width, -(frame // across) * height
            sums = np.array([states[frame] for states in recorded])
            before = np.array([states[max(0, frame - 1)] for states in recorded])
            _frame(axes, sums, sums != before, left, top, _step_name(frame, world_size))
        last = (frames % across) * width, -(frames // across) * height
        _who_sends(axes, world_size, *last)
        axes.set_xlim(-1.3, across * width - 1.2)
        axes.set_ylim(-down * height + 1.8, 2)
        axes.set_axis_off()


def _step_name(frame: int, world_size: int) -> str:
    if frame == 0:
        return "before"
    phase = "reduce-scatter" if frame < world_size else "all-gather"
    return f"step {frame}: {phase}"


def _frame(
    axes: Axes, sums: np.ndarray, arrived: np.ndarray, left: float, top: float, title: str
) -> None:
    """One table, a row for each rank, a column for each chunk. arrived: which cells are new."""
    world_size = len(sums)
    axes.text(left, top + 1.35, title, fontsize=10, fontweight="bold")
    axes.text(left - 0.15, top + 0.75, "chunk", fontsize=8, ha="right", va="center")
    for chunk in range(world_size):
        axes.text(left + 1.25 * chunk + 0.7, top + 0.75, str(chunk), fontsize=8, va="center")
    for rank, row in enumerate(sums):
        y = top - rank
        axes.text(left - 0.15, y - 0.3, f"rank {rank}", fontsize=8, ha="right", va="center")
        for chunk, value in enumerate(row):
            digits = f"{int(value):0{world_size}d}"
            ready = digits.count("1") == world_size
            colour = COLOURS[2] if ready else COLOURS[0]
            strength = 0.55 if ready else 0.1 + 0.4 * digits.count("1") / world_size
            place = (left + 1.25 * chunk, y - 0.75)
            box: dict[str, Any] = {
                "facecolor": (colour, strength),
                "edgecolor": "white",
                "linewidth": 1.5,
            }
            if arrived[rank, chunk]:
                box |= {"edgecolor": "black", "zorder": 3}
            axes.add_patch(Rectangle(place, 1.25, 0.9, **box))
            style: dict[str, Any] = {
                "fontsize": 10,
                "family": "monospace",
                "ha": "center",
                "va": "center",
            }
            style |= {"fontweight": "bold" if ready else "normal", "zorder": 4}
            axes.text(place[0] + 0.625, y - 0.3, digits, **style)
            if arrived[rank, chunk]:
                arrow: dict[str, Any] = {"arrowstyle": "-|>", "color": "black", "linewidth": 1}
                x = place[0] + 0.18
                arrow |= {"shrinkA": 0, "shrinkB": 0}
                axes.annotate("", (x, y - 0.02), (x, y + 0.55), arrowprops=arrow, zorder=5)


def _who_sends(axes: Axes, world_size: int, left: float, top: float) -> None:
    """The ranks in a circle, an arrow from each to the next."""
    axes.text(left, top + 1.35, "who sends to whom", fontsize=10, fontweight="bold")
    above = f"An arrow into rank 0 comes from rank {world_size - 1}."
    axes.text(left, top + 0.75, above, fontsize=8, va="center")
    radius = 0.4 * world_size - 0.1
    middle = left + 0.6 * world_size, top - 0.45 * world_size
    turns = [2 * math.pi * rank / world_size for rank in range(world_size)]
    places = [(middle[0] + radius * math.sin(a), middle[1] + radius * math.cos(a)) for a in turns]
    for rank, place in enumerate(places):
        arrow = {"arrowstyle": "-|>", "color": "black", "shrinkA": 11, "shrinkB": 11}
        arrow["connectionstyle"] = "arc3,rad=-0.25"
        axes.annotate("", places[(rank + 1) % world_size], place, arrowprops=arrow)
        axes.add_patch(Circle(place, 0.36, facecolor="white", edgecolor="black", zorder=3))
        axes.text(*place, str(rank), fontsize=8, ha="center", va="center", zorder=4)
