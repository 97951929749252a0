"""The picture of a ring all-reduce: what every rank holds after every step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from workshop.plots.look import COLOURS, canvas


def ring_steps(recorded: Sequence[np.ndarray]) -> None:
    """What every rank held after every step of a ring all-reduce.

    recorded: for each rank an array (steps + 1, world_size), a number for each chunk, in which
    rank r's own contribution was 10 to the power r: digits that are 1 name the ranks in a sum.
    """
    world_size, frames = recorded[0].shape[1], len(recorded[0])
    across, width, height = world_size, 1.25 * world_size + 1.3, world_size + 1.3
    down = -(-frames // across)
    size = (9, 9 * down * height / (across * width))
    everything = (10**world_size - 1) // 9  # a digit for each rank
    ready = sum(int((ranks[-1] == everything).sum()) for ranks in recorded)
    alt = (
        f"A ring all-reduce of {world_size} ranks in {frames - 1} steps: a table for each step, a "
        f"row for each rank, a column for each chunk. After the last step {ready} of "
        f"{world_size**2} chunks hold the contributions of all ranks."
    )
    with canvas("A ring all-reduce, step by step", "", size=size, alt=alt) as axes:
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
