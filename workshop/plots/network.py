"""Where messages go, and what a job's network is made of: diagrams with instances as boxes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle

from workshop.plots.look import COLOURS, canvas

ACROSS, INSIDE = COLOURS[3], COLOURS[0]
GAP = 2.9  # from one instance to the next; a rank is 1 below the rank before


def messages(
    panels: Mapping[str, Iterable[tuple[int, int]]], instances: int, ranks_each: int, title: str
) -> None:
    """Ranks as circles, instances as boxes, an arrow for each hop; thick where it leaves one.

    panels: the title of each panel, and its hops: from which rank to which.
    """
    hops = {name: list(dict.fromkeys(sent)) for name, sent in panels.items()}
    width = GAP * instances
    size = (min(8, 0.95 * width * len(panels)), 0.45 * ranks_each + 1.5)
    alt = f"{title}. {instances} instances of {ranks_each} ranks. {_in_words(hops, ranks_each)}"
    with canvas(title, "", size=size, alt=alt) as axes:
        for panel, (name, sent) in enumerate(hops.items()):
            left = panel * (width + 0.6)
            axes.text(left - 0.6, 1.0, name, fontsize=10, fontweight="bold", va="bottom")
            for instance in range(instances):
                _instance(axes, instance, ranks_each, left)
            for source, to in sent:
                _hop(axes, source, to, ranks_each, left)
        axes.plot([], [], color=INSIDE, linewidth=1.2, label="inside an instance")
        axes.plot([], [], color=ACROSS, linewidth=3.2, label="over the network")
        axes.set(xlim=(-0.9, len(panels) * (width + 0.6) - 1.6))
        axes.set(ylim=(-ranks_each - 0.5, 1.7), aspect="equal")
        axes.set_axis_off()
        axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=2)


def _where(rank: int, ranks_each: int, left: float) -> tuple[float, float]:
    instance, local_rank = divmod(rank, ranks_each)
    return left + GAP * instance, -float(local_rank)


def _instance(axes: Axes, instance: int, ranks_each: int, left: float) -> None:
    corner = (left + GAP * instance - 0.75, -ranks_each + 0.35)
    box: dict[str, Any] = {"fill": False, "edgecolor": "grey", "zorder": 1}
    axes.add_patch(Rectangle(corner, 1.5, ranks_each + 0.1, **box))
    axes.text(corner[0] + 0.75, 0.52, f"algo-{instance + 1}", ha="center", fontsize=9)
    for rank in range(instance * ranks_each, (instance + 1) * ranks_each):
        x, y = _where(rank, ranks_each, left)
        axes.add_patch(Circle((x, y), 0.27, facecolor="white", edgecolor="black", zorder=3))
        axes.text(x, y, str(rank), ha="center", va="center", fontsize=9, zorder=4)


def _hop(axes: Axes, source: int, to: int, ranks_each: int, left: float) -> None:
    start, end = _where(source, ranks_each, left), _where(to, ranks_each, left)
    look: dict[str, Any] = {"color": INSIDE, "linewidth": 1.2}
    if _crosses(source, to, ranks_each):
        look = {"color": ACROSS, "linewidth": 3.2}
    around = start[0] == end[0] and abs(start[1] - end[1]) > 1  # the ranks between the two
    arrow = FancyArrowPatch(
        start,
        end,
        arrowstyle="-|>",
        mutation_scale=13,
        shrinkA=9,
        shrinkB=9,
        connectionstyle=f"arc3,rad={0.32 if around else 0.12}",
        zorder=2,
        **look,
    )
    axes.add_patch(arrow)


def _crosses(source: int, to: int, ranks_each: int) -> bool:
    return source // ranks_each != to // ranks_each


def _in_words(hops: Mapping[str, list[tuple[int, int]]], ranks_each: int) -> str:
    sentences = []
    for name, sent in hops.items():
        crossing = [f"{a} to {b}" for a, b in sent if _crosses(a, b, ranks_each)]
        inside, over = len(sent) - len(crossing), ", ".join(crossing) or "nothing"
        sentences.append(f"{name}: {inside} hops inside instances; over the network {over}.")
    return " ".join(sentences)


def vpc(network: Mapping[str, str]) -> None:
    """A job's two instances in a VPC: what is inside what, and which ways lead out.

    network: the names of its `vpc`, `subnet`, `zone` and security `group`, written into the boxes.
    """
    title = "What ranks send each other stays in one subnet;\nbeyond it only S3 is reachable"
    ways = "a gateway endpoint to S3; off: interface endpoints and a NAT gateway"
    alt = (
        f"{title}. SageMaker runs 2 instances. Each has a network card (ENI) in the "
        f"subnet {network['subnet']} of zone {network['zone']}, in the VPC {network['vpc']}, "
        f"inside the security group {network['group']}, whose members reach each other. "
        f"Ways out: {ways}."
    )
    with canvas(title, "", size=(7.5, 4.6), alt=alt) as axes:
        _box(axes, (0, 0), (2.7, 5.2), "SageMaker's own account", "grey")
        _box(axes, (3.1, 0), (5.0, 5.2), f"your VPC\n{network['vpc']}", COLOURS[2])
        zone = f"in the zone {network['zone']}, subnet\n{network['subnet']}"
        _box(axes, (3.3, 0.2), (3.0, 3.95), zone, COLOURS[0])
        group = f"security group\n{network['group']}"
        _box(axes, (3.45, 0.35), (2.7, 2.9), group, COLOURS[3], "--")
        for name, y in {"algo-1": 1.75, "algo-2": 0.5}.items():
            _box(axes, (0.35, y), (1.7, 0.75), f"instance {name}", "black")
            _box(axes, (4.0, y), (1.3, 0.75), "network card\n(ENI)", "black")
            _way(axes, (2.05, y + 0.38), (4.0, y + 0.38), "black")
        _way(axes, (4.65, 1.75), (4.65, 1.25), COLOURS[3], "<|-|>", 3)
        axes.text(4.8, 1.48, "gradients", fontsize=8, va="center")
        ends = {
            "S3 gateway\nendpoint\n(free)": ("S3: your\nbucket", "-", 3.2),
            "interface\nendpoints\n(off: by the hour)": ("other AWS\nservices", "--", 1.8),
            "NAT gateway\n(off: by the hour)": ("the internet", "--", 0.4),
        }
        for name, (outside, line, y) in ends.items():
            look = COLOURS[2] if line == "-" else "grey"
            _box(axes, (6.45, y), (1.5, 0.95), name, look, line)
            _box(axes, (8.6, y), (1.6, 0.95), outside, look, line)
            _way(axes, (6.3, 2.2), (6.45, y + 0.45), look, line=line)
            _way(axes, (7.95, y + 0.45), (8.6, y + 0.45), look, line=line)
        axes.set(xlim=(-0.1, 10.3), ylim=(-0.1, 5.35))
        axes.set_axis_off()


def _box(axes: Axes, corner, size, text: str, colour, line: str = "-") -> None:
    look: dict[str, Any] = {"fill": False, "edgecolor": colour, "linestyle": line, "linewidth": 1.6}
    axes.add_patch(Rectangle(corner, *size, **look))
    inside = size[1] < 1.2  # a small box has its text in the middle
    at = corner[1] + (size[1] / 2 if inside else size[1] - 0.1)
    style: dict[str, Any] = {"ha": "center", "va": "center" if inside else "top", "fontsize": 8}
    axes.text(corner[0] + size[0] / 2, at, text, **style)


def _way(axes: Axes, start, end, colour, style: str = "-", width: float = 1.4, line="-") -> None:
    look: dict[str, Any] = {
        "color": colour,
        "linewidth": width,
        "linestyle": line,
        "arrowstyle": style,
    }
    axes.add_patch(FancyArrowPatch(start, end, mutation_scale=14, shrinkA=0, shrinkB=0, **look))
