"""Plots of the lessons: one look, units on the axes, colours for colour-blind readers too.

`plots.canvas` gives a figure of that look; each module here draws one kind of picture.
"""

from workshop.plots.comparing import throughput
from workshop.plots.jobs import loss, phases
from workshop.plots.look import COLOURS, canvas

__all__ = ["COLOURS", "canvas", "loss", "phases", "throughput"]
