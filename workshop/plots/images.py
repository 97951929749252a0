"""Small pictures beside each other."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np

from workshop.plots import look

COLUMNS = 6


def images(pictures: np.ndarray, captions: Sequence[str], title: str) -> None:
    """Show grey pictures, six in a row, each with its caption.

    pictures: uint8 (n, height, width, 1), 0 black to 255 white. captions: n texts.
    Nothing is shown for no picture.
    """
    if len(pictures) != len(captions):
        raise ValueError(f"{len(pictures)} pictures have {len(captions)} captions.")
    if not len(pictures):
        return
    rows = -(-len(pictures) // COLUMNS)
    with plt.rc_context(look.STYLE):
        figure, grid = plt.subplots(
            rows, COLUMNS, figsize=(1.35 * COLUMNS, 1.75 * rows + 0.4), layout="constrained"
        )
        try:
            figure.suptitle(title)
            for axes in grid.flat:
                axes.axis("off")
            for axes, picture, caption in zip(grid.flat, pictures, captions, strict=False):
                axes.imshow(picture[..., 0], cmap="gray", vmin=0, vmax=255)
                axes.set_title(caption, fontsize=9)
            look.show_figure(figure, title)
        finally:
            plt.close(figure)
