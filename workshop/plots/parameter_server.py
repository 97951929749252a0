"""Plots of lesson 03: who waits, how stale gradients are, what passes the server.

A run is what the lesson's `train` returns. Its `pushes` are a pandas table, a row for each
gradient that reached the server: worker, staleness (updates), loss, seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workshop.plots.look import COLOURS, canvas

if TYPE_CHECKING:
    import pandas as pd


def staleness(runs: dict[str, pd.DataFrame], most: int = 8) -> None:
    """How many gradients were how stale: a group of bars for each run.

    runs: name -> pushes. most: all that is at least so stale is one group.
    """
    label = "staleness: updates by others between a worker's pull and its push"
    with canvas("How stale the gradients were", label, "share of the gradients, %") as axes:
        width = 0.8 / len(runs)
        for index, (name, pushes) in enumerate(runs.items()):
            counts = pushes["staleness"].clip(upper=most).value_counts(normalize=True)
            shares = [100 * counts.get(one, 0.0) for one in range(most + 1)]
            places = [one + (index - (len(runs) - 1) / 2) * width for one in range(most + 1)]
            axes.bar(places, shares, width, label=name, color=COLOURS[index])
        names = [*map(str, range(most)), f"{most} or more"]
        axes.set_xticks(range(most + 1), names)
        axes.legend(frameon=False)


def progress(runs: dict[str, pd.DataFrame], slow: int) -> None:
    """How far each worker came: its gradients against the time, a line for each worker.

    runs: name -> pushes. slow: the number of the slow worker, drawn dashed.
    """
    title = "One slow worker holds up all who wait for it"
    with canvas(title, "seconds", "gradients pushed by a worker") as axes:
        for index, (name, pushes) in enumerate(runs.items()):
            labels = {False: f"{name}: the others", True: f"{name}: the slow worker"}
            if pushes["worker"].value_counts().nunique() == 1:  # one line over the other
                labels = {False: f"{name}: all workers"}
            for worker, own in pushes.groupby("worker"):
                style = {"linestyle": "--" if worker == slow else "-", "linewidth": 1.8}
                axes.plot(
                    own["seconds"],
                    range(1, len(own) + 1),
                    color=COLOURS[index],
                    label=labels.pop(worker == slow, None),
                    **style,
                )
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)


def losses(runs: dict[str, pd.DataFrame], over: int) -> None:
    """The loss against the gradients applied, a line for each run.

    runs: name -> pushes. over: each point is the mean of the last so many batches.
    """
    label = "gradients that reached the server"
    with canvas("Stale gradients at a high learning rate", label, "loss (cross-entropy)") as axes:
        for index, (name, pushes) in enumerate(runs.items()):
            smooth = pushes["loss"].rolling(over, min_periods=1).mean()
            axes.plot(range(1, len(smooth) + 1), smooth, label=name, color=COLOURS[index])
        axes.set_ylim(0, 3)
        axes.legend(frameon=False)


def traffic(measured: pd.Series, model_kb: float, most: int = 16) -> None:
    """Bytes through the server, and through a rank of a ring, as workers grow.

    measured: kB in and out of the server in a step, its index the workers. model_kb: kB of one
    gradient. most: up to so many workers the two formulas are drawn.
    """
    counts = range(1, most + 1)
    label = "kB in and out, in one step"
    with canvas("The server carries everybody's bytes", "workers", label) as axes:
        server = [2 * model_kb * count for count in counts]
        axes.plot(counts, server, color=COLOURS[0], label="server, computed")
        style = {"color": COLOURS[3], "marker": "o", "linestyle": "none"}
        axes.plot(measured.index, measured, label="server, measured", **style)
        ring = [4 * model_kb * (count - 1) / count for count in counts]
        label = "each rank of a ring, computed"
        axes.plot(counts, ring, color=COLOURS[2], linestyle="--", label=label)
        axes.set_xticks(sorted({*measured.index, *range(4, most + 1, 4)}))
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False)
