"""Plots of the lessons: one look, units on the axes, to be read without colour too.

`canvas` gives axes of that look, to draw on with plain matplotlib. `bar_chart`,
`grouped_bar_chart` and `lines` are what most lessons need, and `gantt` draws bars in time;
`stacked_bars` and `scaling_map` are the two pictures that run through the lessons; `images` shows
small pictures; `ring_steps` is lesson 02's, and `interactive.ring` the same with a slider.
`show_figure(figure, alt)` shows any other figure.

Every picture has an alternative text. The functions make it from what they draw; `alt="..."` of
`canvas` replaces theirs.
"""

from workshop.plots import interactive
from workshop.plots.figures import bar_chart, grouped_bar_chart, lines
from workshop.plots.gantt import gantt
from workshop.plots.look import COLOURS, canvas, images, show_figure
from workshop.plots.ring import ring_steps
from workshop.plots.scaling import scaling_map, stacked_bars

__all__ = [
    "COLOURS",
    "bar_chart",
    "canvas",
    "gantt",
    "grouped_bar_chart",
    "images",
    "interactive",
    "lines",
    "ring_steps",
    "scaling_map",
    "show_figure",
    "stacked_bars",
]
