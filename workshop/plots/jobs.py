"""Plots of one training job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workshop.plots.look import COLOURS, canvas

if TYPE_CHECKING:
    from workshop.jobs.follow import JobResult


def phases(result: JobResult) -> None:
    """Where a job's seconds went: a bar for each phase, its seconds beside it."""
    names, seconds = list(result.phases), list(result.phases.values())
    size = (7, 0.5 * len(names) + 1.3)
    with canvas("Where the job's time went", "seconds", size=size) as axes:
        bars = axes.barh(names, seconds, color=COLOURS[: len(names)])
        axes.bar_label(bars, [f"{one:.1f} s" for one in seconds], padding=4)
        axes.set_xlim(0, max(seconds) * 1.15)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)


def loss(result: JobResult) -> None:
    """The training loss of a job, step by step, and its mean over each epoch."""
    steps, epochs = result.table("step"), result.table("epoch")
    labels = ("step (one global batch)", "training loss (cross-entropy)")
    with canvas("The loss falls", *labels) as axes:
        axes.plot(steps["step"], steps["train_loss"], color=COLOURS[4], label="one step")
        style = {"color": COLOURS[0], "marker": "o", "markersize": 4}
        axes.plot(epochs["step"], epochs["train_loss"], label="mean of an epoch", **style)
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)
