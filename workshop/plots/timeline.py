"""The plot of one step of a Horovod Timeline."""

from __future__ import annotations

from workshop.plots.look import COLOURS, canvas
from workshop.timeline import PHASES


def timeline(step, title: str = "One step: what happened to each gradient") -> None:
    """A row for each tensor, a bar for each phase. step: what workshop.timeline.one_step gave."""
    tensors = list(dict.fromkeys(step["tensor"]))
    with canvas(title, "milliseconds", size=(7.5, 0.32 * len(tensors) + 1.6)) as axes:
        for phase, colour in zip(PHASES, COLOURS, strict=False):
            rows = step[step["phase"] == phase]
            if len(rows):
                axes.barh(
                    [tensors.index(one) for one in rows["tensor"]],
                    rows["ms"],
                    left=rows["start_ms"],
                    height=0.7,
                    color=colour,
                    label=phase,
                )
        axes.set_yticks(range(len(tensors)), tensors)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
        axes.legend(
            frameon=False, ncols=len(PHASES), loc="upper center", bbox_to_anchor=(0.45, -0.22)
        )
