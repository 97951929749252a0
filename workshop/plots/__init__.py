"""Plots of the lessons: one look, units on the axes, colours for colour-blind readers too.

`plots.canvas` gives a figure of that look; each module here draws what its name says.
"""

from workshop.plots.jobs import loss, phases, throughput
from workshop.plots.look import COLOURS, canvas, images
from workshop.plots.scaling import (
    accuracy_by_setting,
    loss_by_update,
    predicted_speedup,
    speedup_bars,
)

__all__ = [
    "COLOURS",
    "accuracy_by_setting",
    "canvas",
    "images",
    "loss",
    "loss_by_update",
    "phases",
    "predicted_speedup",
    "speedup_bars",
    "throughput",
]
