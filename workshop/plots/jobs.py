"""Plots of training jobs: where the seconds went, the loss, several configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.patches import Patch

from workshop.plots.look import COLOURS, canvas

if TYPE_CHECKING:
    import pandas as pd

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


def throughput(table: pd.DataFrame) -> None:
    """Samples a second of each configuration, a bar each, its step time beside it.

    table: what workshop.compare returned. Bars of equal world_size have one colour.
    """
    sizes = sorted(table["world_size"].unique())
    colours = {size: COLOURS[index % len(COLOURS)] for index, size in enumerate(sizes)}
    size = (7.5, 0.42 * len(table) + 1.4)
    label = "samples per second, all ranks together"
    with canvas("Samples per second, and the time of a step", label, size=size) as axes:
        bars = axes.barh(
            list(table.index),
            table["samples/s"],
            color=[colours[one] for one in table["world_size"]],
        )
        axes.bar_label(bars, [f"{one:.1f} ms" for one in table["step ms"]], padding=4)
        axes.set_xlim(0, table["samples/s"].max() * 1.22)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        handles = [Patch(color=colours[one], label=f"world_size {one}") for one in sizes]
        axes.legend(handles=handles, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
