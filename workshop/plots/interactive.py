"""A picture that the reader moves: in JupyterLab, on the pages and on the site.

    interactive.ring(recorded)                 # the steps of a ring all-reduce, with a slider

The output holds all that it needs (interactive.html, .css and .js, and the data of this run), so it
works without a kernel and without a network. In a notebook that is not trusted JupyterLab runs no
scripts, and shows a sentence in place of the picture.
"""

from __future__ import annotations

import html
import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from string import Template

import numpy as np

HERE = Path(__file__).parent


def ring(recorded: Sequence[np.ndarray]) -> None:
    """Show a ring all-reduce step by step; the slider chooses the step.

    recorded: as `plots.ring_steps` takes it: for each rank an array (steps + 1, world_size).
    """
    frames = np.array(recorded).transpose(1, 0, 2).astype(int).tolist()
    about = f"A ring all-reduce of {len(recorded)} ranks in {len(frames) - 1} steps, with a slider."
    from IPython.display import display

    display({"text/html": as_html({"frames": frames}, about), "text/plain": about}, raw=True)


def as_html(data: dict, about: str) -> str:
    """The output: the picture's element, its style, its program and its data."""
    parts = {kind: (HERE / f"interactive.{kind}").read_text() for kind in ("html", "css", "js")}
    return Template(parts["html"]).substitute(
        parts,
        element=f"workshop-ring-{uuid.uuid4().hex[:8]}",
        about=html.escape(about),
        values=json.dumps(data, allow_nan=False).replace("</", "<\\/"),
    )
