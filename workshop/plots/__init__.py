"""Plots of the lessons: one look, units on the axes, to be read without colour too.

`canvas` gives axes of that look, to draw on with plain matplotlib. `bars`, `groups` and `lines`
are the three figures that most lessons need; `images` shows small pictures; `ring_steps` is lesson
02's. `show_figure(figure, alt)` shows any other figure.

Every picture has an alternative text. The functions make it from what they draw; `alt="..."` of
`canvas` replaces theirs.
"""

from workshop.plots.figures import bars, groups, lines
from workshop.plots.look import COLOURS, canvas, images, show_figure
from workshop.plots.ring import ring_steps

__all__ = ["COLOURS", "bars", "canvas", "groups", "images", "lines", "ring_steps", "show_figure"]
