"""Plots of jobs: one look, units on the axes, colours that colour-blind people can tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib.pyplot as plt

if TYPE_CHECKING:
    from workshop.following import JobResult

# Okabe and Ito's palette, without yellow, which is hard to see on white.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000")
STYLE = {
    "figure.dpi": 110,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
}


def phases(result: JobResult):
    """Where a job's seconds went: a bar for each phase, its seconds beside it."""
    names, seconds = list(result.phases), list(result.phases.values())
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(7, 0.5 * len(names) + 1.3), layout="constrained")
        bars = axes.barh(names, seconds, color=COLOURS[: len(names)])
        axes.bar_label(bars, [f"{one:.1f} s" for one in seconds], padding=4)
        axes.set_xlim(0, max(seconds) * 1.15)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("seconds")
        axes.set_title("Where the job's time went")
        return _shown(figure)


def loss(result: JobResult):
    """The training loss of a job, step by step, and its mean over each epoch."""
    steps, epochs = result.table("step"), result.table("epoch")
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
        axes.plot(steps["step"], steps["train_loss"], color=COLOURS[4], label="one step")
        style = {"color": COLOURS[0], "marker": "o", "markersize": 4}
        axes.plot(epochs["step"], epochs["train_loss"], label="mean of an epoch", **style)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("step (one global batch)")
        axes.set_ylabel("training loss (cross-entropy)")
        axes.set_title("The loss falls")
        axes.legend(frameon=False)
        return _shown(figure)


def _shown(figure) -> None:
    # Shown and closed here, so that a cell that ends with a plot shows it once.
    plt.show()
    plt.close(figure)
