"""A training step in time, and the buckets that its gradients travel in."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from workshop.plots.look import COLOURS, canvas

LOOKS = {  # kind of span: colour, hatch
    "forward": (COLOURS[4], ""),
    "backward": (COLOURS[0], "//"),
    "all-reduce": (COLOURS[1], ".."),
}


def timelines(spans: pd.DataFrame, title: str) -> None:
    """Computing and communication of a step, two rows for each rank, one panel for each setting.

    spans: columns setting, rank, kind (forward, backward or all-reduce), start_ms, ms.
    """
    rows = [
        (setting, rank, kinds)
        for setting in spans["setting"].unique()
        for rank in sorted(spans["rank"].unique())
        for kinds in (("forward", "backward"), ("all-reduce",))
    ]
    said: set[str] = set()
    x, size = "milliseconds since the step began", (9, 0.42 * len(rows) + 1.5)
    with canvas(title, x, size=size, alt=_spans_in_words(spans, title)) as axes:
        names, heights, y = [], [], 0.0
        for number, (setting, rank, kinds) in enumerate(rows):
            if number and rows[number - 1][0] != setting:
                y += 0.9
            if number == 0 or rows[number - 1][0] != setting:
                axes.text(0, y - 0.62, setting, fontweight="bold", fontsize=9, va="bottom")
            mine = spans[(spans["setting"] == setting) & (spans["rank"] == rank)]
            mine = mine[mine["kind"].isin(kinds)].sort_values("start_ms")
            for bucket, one in enumerate(mine.itertuples()):
                colour, hatch = LOOKS[one.kind]
                label = None if one.kind in said else one.kind
                said.add(one.kind)
                look = {"color": colour, "hatch": hatch, "edgecolor": "white", "label": label}
                height = 0.78 if len(kinds) > 1 else 0.78 / len(mine)  # several travel at once
                place = y if len(kinds) > 1 else y + (bucket - (len(mine) - 1) / 2) * height
                axes.barh(place, one.ms, left=one.start_ms, height=height, alpha=0.85, **look)
            names.append(f"rank {rank}: {'computes' if len(kinds) > 1 else 'communicates'}")
            heights.append(y)
            y += 1 if len(kinds) > 1 else 1.15
        axes.set_yticks(heights, names)
        axes.set_ylim(y - 0.5, -1.2)  # downwards
        axes.grid(axis="y", visible=False)
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def _spans_in_words(spans: pd.DataFrame, title: str) -> str:
    said = []
    for (setting, rank), mine in spans.groupby(["setting", "rank"], sort=False):
        each = [
            f"{one.kind} from {one.start_ms:.0f} to {one.start_ms + one.ms:.0f}"
            for one in mine.sort_values("start_ms").itertuples()
        ]
        said.append(f"{setting}, rank {rank}: {', '.join(each)}.")
    return f"{title} (milliseconds). {' '.join(said)}"


def buckets(sizes: Sequence[Sequence[tuple[str, int]]], title: str) -> None:
    """Each bucket as a bar of its tensors, in the order in which their gradients are ready.

    sizes: for each bucket the names and bytes of its tensors.
    """
    said = "; ".join(
        f"bucket {number}: {len(tensors)} tensors, {sum(n for _, n in tensors) / 1e6:.1f} MB, from "
        f"{tensors[0][0]} to {tensors[-1][0]}"
        for number, tensors in enumerate(sizes)
    )
    size = (9, 0.62 * len(sizes) + 1.3)
    with canvas(title, "MB of gradients", size=size, alt=f"{title}. {said}.") as axes:
        for number, tensors in enumerate(sizes):
            left = 0.0
            for shade, (name, n_bytes) in enumerate(tensors):
                width = n_bytes / 1e6
                colour = COLOURS[0] if shade % 2 else COLOURS[4]
                axes.barh(number, width, left=left, height=0.7, color=colour, edgecolor="white")
                if width > 4:
                    look = {"ha": "center", "va": "center", "fontsize": 8}
                    look["color"] = "white" if shade % 2 else "black"
                    axes.text(left + width / 2, number, name, **look)
                left += width
            axes.annotate(
                f"{len(tensors)} tensors, {left:.1f} MB",
                (left, number),
                (5, 0),
                textcoords="offset points",
                va="center",
            )
        axes.set_yticks(range(len(sizes)), [f"bucket {number}" for number in range(len(sizes))])
        axes.set_xlim(0, 1.25 * max(sum(n for _, n in one) for one in sizes) / 1e6)
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
