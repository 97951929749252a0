"""Plots of ranks: on their hosts, and what they do in one step (a Horovod Timeline)."""

from __future__ import annotations

from matplotlib.patches import Circle, FancyBboxPatch

from workshop.measure.timeline import PHASES
from workshop.plots.look import COLOURS, canvas


def ranks_on_hosts(table, title: str = "Ranks on their hosts") -> None:
    """A box for each host, a circle for each rank.

    table: a row for each rank, with the columns host, rank, local_rank and cross_rank.
    """
    hosts = list(dict.fromkeys(table.sort_values("rank")["host"]))
    widest = int(table["local_rank"].max()) + 1
    with canvas(title, "", size=(2.2 * len(hosts) * max(1.0, widest / 2) + 0.6, 2.3)) as axes:
        for at, host in enumerate(hosts):
            left = at * (widest + 0.4)
            box = FancyBboxPatch(
                (left, 0),
                widest,
                1.25,
                boxstyle="round,pad=0.06",
                facecolor="none",
                edgecolor="0.5",
            )
            axes.add_patch(box)
            axes.text(left + widest / 2, 1.42, f"host {host}", ha="center", va="bottom")
            for one in table[table["host"] == host].itertuples():
                x = left + one.local_rank + 0.5
                colour = COLOURS[one.local_rank % len(COLOURS)]
                axes.add_patch(Circle((x, 0.8), 0.3, color=colour))
                axes.text(x, 0.8, str(one.rank), ha="center", va="center", color="white", size=15)
                axes.text(x, 0.3, f"local_rank {one.local_rank}", ha="center", va="center", size=8)
                axes.text(x, 0.1, f"cross_rank {one.cross_rank}", ha="center", va="center", size=8)
        axes.set_xlim(-0.2, len(hosts) * (widest + 0.4) - 0.2)
        axes.set_ylim(-0.15, 1.75)
        axes.set_aspect("equal")
        axes.axis("off")


def timeline(step, title: str = "One step: what happened to each gradient") -> None:
    """A row for each tensor, a bar for each phase. step: of workshop.measure.timeline.one_step."""
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
