"""A picture that the reader moves: in JupyterLab, on the pages and on the site.

    interactive.ring(recorded)                 # the steps of a ring all-reduce, with a slider

The output holds all that it needs (interactive.js, interactive.css and the data of this run), so
it works without a kernel and without a network. In a notebook that is not trusted JupyterLab runs
no scripts, and shows a sentence in place of the picture.
"""

from __future__ import annotations

import html
import json
import uuid
from collections.abc import Sequence
from pathlib import Path

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
    element = f"workshop-ring-{uuid.uuid4().hex[:8]}"
    style, program = ((HERE / f"interactive.{kind}").read_text() for kind in ("css", "js"))
    values = json.dumps(data, allow_nan=False).replace("</", "<\\/")
    return f"""<style>{style}</style>
<div class="workshop-piece" id="{element}" role="group" aria-label="{html.escape(about)}">
<p>{html.escape(about)} It needs JavaScript. In JupyterLab: File > Trust Notebook.</p>
</div>
<script>
{program}
{{
  const element = document.getElementById("{element}");
  element.replaceChildren();
  workshopPieces.ring(element, {values});
}}
</script>"""
