"""The one look of all plots: axes, and small pictures beside each other.

Each picture has an alternative text, for readers who cannot see it.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.ticker import NullFormatter, StrMethodFormatter

# Okabe and Ito's palette, without yellow, which is hard to see on white.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#000000")
IMAGE_COLUMNS = 6
STYLE: dict[Any, Any] = {
    "figure.dpi": 110,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
}


@contextmanager
def canvas(
    title: str,
    x: str,
    y: str = "",
    size: tuple[float, float] = (7, 3.2),
    alt: str = "",
) -> Iterator[Axes]:
    """Give axes of the common look; at the end show the figure, once, and close it.

    Args:
        title: what the picture shows, as a short sentence.
        x, y: the axes' labels, with their units.
        size: width and height, inches.
        alt: the alternative text: what the picture shows, for readers who can't see it. By
            default the title, the axes' labels, and where each labelled line begins and ends.
    """
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=size, layout="constrained")
        try:
            axes.set_title(title)
            axes.set_xlabel(x)
            axes.set_ylabel(y)
            yield axes
            _label_between(axes)
            show_figure(figure, (alt or description(axes)).replace("\n", " "))
        finally:
            plt.close(figure)


def _label_between(axes: Axes) -> None:
    """Label a logarithmic axis in one way: matplotlib mixes "10" with "6 x 10^0" between."""
    for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if axis.get_scale() == "log" and isinstance(axis.get_major_formatter(), StrMethodFormatter):
            few = max(limits) < 20 * min(limits)  # one or two powers of ten are in the picture
            axis.set_minor_formatter("{x:g}" if few else NullFormatter())


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
    columns = min(IMAGE_COLUMNS, len(pictures))
    rows = -(-len(pictures) // columns)
    with plt.rc_context(STYLE):
        figure, grid = plt.subplots(
            rows,
            columns,
            figsize=(max(4, 1.35 * columns), 1.75 * rows + 0.4),
            layout="constrained",
            squeeze=False,
        )
        try:
            figure.suptitle(title)
            for axes in grid.flat:
                axes.axis("off")
            for axes, picture, caption in zip(grid.flat, pictures, captions, strict=False):
                axes.imshow(picture, cmap="gray", vmin=0, vmax=255)
                axes.set_title(caption, fontsize=9)
            show_figure(figure, f"{title}: {'; '.join(captions)}")
        finally:
            plt.close(figure)


def show_figure(figure, alt: str) -> None:
    """Show a matplotlib figure with its alternative text. The caller closes it.

    In a notebook it is an <img> with twice the pixels, so that it is sharp on every screen.
    (JupyterLab ignores the text that image/png may have in its metadata.)
    Raises ValueError without a text.
    """
    if not alt.strip():
        raise ValueError("alt is empty: say in it what the picture shows.")
    if not plt.get_backend().endswith("inline"):  # no notebook draws it
        plt.show()
        return
    from IPython.core.pylabtools import retina_figure
    from IPython.display import display

    png, size = retina_figure(figure, base64=True, bbox_inches="tight")
    image = (
        f'<img alt="{html.escape(alt)}" width="{size["width"]}" height="{size["height"]}" '
        f'src="data:image/png;base64,{png}">'
    )
    display({"text/html": image, "text/plain": f"Picture: {alt}"}, raw=True)


def legend_beside(axes: Axes, handles: list | None = None) -> None:
    """Explain what is drawn to the right of the axes, where it covers nothing."""
    if handles is None:
        handles = axes.get_legend_handles_labels()[0]
    if handles:
        axes.legend(handles=handles, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def description(axes: Axes) -> str:
    """What is drawn on axes, in words: title, labels, where each labelled line begins and ends.

    Marks with error bars count as a line; of a single point that point is named.
    """
    parts = [axes.get_title()]
    if axes.axison and axes.get_xlabel():
        parts.append(f"Across: {axes.get_xlabel()}")
    if axes.axison and axes.get_ylabel():
        parts.append(f"Up: {axes.get_ylabel()}")
    drawn = [(line.get_label(), line) for line in axes.lines]
    marks = [container for container in axes.containers if isinstance(container, ErrorbarContainer)]
    drawn += [(container.get_label(), container.lines[0]) for container in marks]
    for name, line in drawn:
        across, up = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        if str(name).startswith("_") or not len(across):
            continue
        points = [f"({_number(x)}, {_number(y)})" for x, y in zip(across, up, strict=True)]
        where = f"from {points[0]} to {points[-1]}" if len(points) > 1 else f"at {points[0]}"
        parts.append(f"{name}: {where}")
    phrases = (part.replace("\n", " ").rstrip(".") for part in parts)
    return ". ".join(part for part in phrases if part) + "."


def _number(value) -> str:
    return f"{value:.3g}" if isinstance(value, float | np.floating) else str(value)
