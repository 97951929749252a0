"""The one look of all plots: axes, and small pictures beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import matplotlib.pyplot as plt
import numpy as np

# Okabe and Ito's palette, without yellow, which is hard to see on white.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000")
IMAGE_COLUMNS = 6
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


def images(pictures: np.ndarray, captions: Sequence[str], title: str) -> None:
    """Show pictures, six in a row, each with its caption.

    pictures: uint8 (n, height, width, channels), 0 black to 255 white; 1 channel is grey, 3 are
    red, green and blue. captions: n texts.
    Nothing is shown for no picture.
    """
    if len(pictures) != len(captions):
        raise ValueError(f"{len(pictures)} pictures have {len(captions)} captions.")
    if not len(pictures):
        return
    rows = -(-len(pictures) // IMAGE_COLUMNS)
    with plt.rc_context(STYLE):
        figure, grid = plt.subplots(
            rows,
            IMAGE_COLUMNS,
            figsize=(1.35 * IMAGE_COLUMNS, 1.75 * rows + 0.4),
            layout="constrained",
        )
        try:
            figure.suptitle(title)
            for axes in grid.flat:
                axes.axis("off")
            for axes, picture, caption in zip(grid.flat, pictures, captions, strict=False):
                axes.imshow(picture, cmap="gray", vmin=0, vmax=255)
                axes.set_title(caption, fontsize=9)
            show_figure(figure, title)
        finally:
            plt.close(figure)


def show_figure(figure, title: str) -> None:
    """In a notebook with twice the pixels, so that it is sharp on every screen."""
    if not plt.get_backend().endswith("inline"):  # no notebook draws it
        plt.show()
        return
    from IPython.display import display
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("retina")
    display(figure, metadata={"alt": title})
