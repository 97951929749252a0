"""The one look of all plots."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib.pyplot as plt

from workshop.display import in_notebook

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


@contextmanager
def canvas(title: str, x: str, y: str = "", size: tuple[float, float] = (7, 3.2)) -> Iterator:
    """Give axes of the common look; at the end show the figure, once, and close it.

    Args:
        title: what the picture shows, as a short sentence.
        x, y: the axes' labels, with their units.
        size: width and height, inches.
    """
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=size, layout="constrained")
        try:
            axes.set_title(title)
            axes.set_xlabel(x)
            axes.set_ylabel(y)
            yield axes
            show_figure(figure, title)
        finally:
            plt.close(figure)


def show_figure(figure, title: str) -> None:
    """In a notebook with twice the pixels, so that it is sharp on every screen."""
    if not in_notebook():
        plt.show()
        return
    from IPython.display import display
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("retina")
    display(figure, metadata={"alt": title})
