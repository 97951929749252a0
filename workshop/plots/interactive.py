"""Pieces of a lesson that a reader moves: in JupyterLab, on the pages and on the site.

    interactive.ring(recorded)                 # the steps of a ring all-reduce, with a slider
    interactive.timeline(table)                # what each rank did in a step
    interactive.calculator(tiers, compute, gradient_bytes, images)

Each output holds all that it needs (interactive.js, interactive.css and the data of this run), so
it works without a kernel and without a network. In a notebook that is not trusted JupyterLab runs
no scripts, and shows the sentence that stands in the piece's place.
"""

from __future__ import annotations

import dataclasses
import html
import json
import uuid
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
KINDS = ("compute", "wait", "communicate")


def ring(recorded: Sequence[np.ndarray]) -> None:
    """Show a ring all-reduce step by step; the slider chooses the step.

    recorded: as `plots.ring_steps` takes it: for each rank an array (steps + 1, world_size).
    """
    frames = np.array(recorded).transpose(1, 0, 2).astype(int).tolist()
    about = f"A ring all-reduce of {len(recorded)} ranks in {len(frames) - 1} steps, with a slider."
    _show("ring", {"frames": frames}, about)


def timeline(table: pd.DataFrame) -> None:
    """Show what each rank did in a step; the slider chooses the step.

    table: as workshop.measure.timeline.by_rank returns it: columns step, rank, kind ("compute",
    "wait" or "communicate"), start_ms and ms. Raises ValueError for another kind, and without rows.
    """
    if table.empty or (unknown := set(table["kind"]) - set(KINDS)):
        raise ValueError(
            "The table has no rows." if table.empty else f"Unknown kinds: {sorted(unknown)}."
        )
    spans = json.loads(table[["step", "rank", "kind", "start_ms", "ms"]].to_json(orient="records"))
    about = f"What {table['rank'].nunique()} ranks did in each of {table['step'].nunique()} steps."
    _show("timeline", {"spans": spans}, about)


def calculator(
    tiers,
    compute,
    gradient_bytes: int,
    images: int,
    *,
    instances: int = 2,
    ranks_per_instance: int = 2,
    algorithm: str = "gloo",
    overlap: float = 0.0,
    cores: int | None = None,
) -> None:
    """Show a calculator of step times, which opens once the reader has guessed.

    Args:
        tiers: a workshop.measure.alpha_beta.TwoTiers with both tiers, measured in this run.
        compute: a workshop.measure.step_time.Compute, measured in this run.
        gradient_bytes, images: of the model and of each rank's batch.
        instances, ranks_per_instance, algorithm, overlap: what it begins with.
        cores: of this machine, where all ranks share them; offered as a choice.

    Raises ValueError where a tier was not measured.
    """
    if tiers.inside is None or tiers.across is None:
        raise ValueError("The calculator needs both tiers: measure on 2 instances of 2 ranks.")
    data = {
        "tiers": dataclasses.asdict(tiers),
        "compute": dataclasses.asdict(compute),
        "bytes": gradient_bytes,
        "images": images,
        "instances": instances,
        "each": ranks_per_instance,
        "algorithm": algorithm,
        "overlap": overlap,
        "cores": cores,
    }
    _show("calculator", data, "A calculator of step times, from the values that this run measured.")


def _show(piece: str, data: dict, about: str) -> None:
    from IPython.display import display

    display({"text/html": as_html(piece, data, about), "text/plain": about}, raw=True)


def as_html(piece: str, data: dict, about: str) -> str:
    """One output: the piece's place, its look, its program and its data."""
    place = f"workshop-{piece}-{uuid.uuid4().hex[:8]}"
    style, program = ((HERE / f"interactive.{kind}").read_text() for kind in ("css", "js"))
    values = json.dumps(data, allow_nan=False).replace("</", "<\\/")
    return f"""<style>{style}</style>
<div class="workshop-piece" id="{place}" role="group" aria-label="{html.escape(about)}">
<p>{html.escape(about)} It needs JavaScript. In JupyterLab: File > Trust Notebook.</p>
</div>
<script>
{program}
{{
  const place = document.getElementById("{place}");
  place.replaceChildren();
  workshopPieces.{piece}(place, {values});
}}
</script>"""
