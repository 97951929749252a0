"""The cost model on what it was not fitted on: sizes, rates, layouts, latencies, training steps.

    points = held_out.all_reduces(jobs)            # a row for each all-reduce that was measured
    held_out.summary(points)                       # median error, how many within 12 %, the largest
    held_out.wrong_winners(points)                 # where the model picks the wrong algorithm
    held_out.by_bytes(points)                      # the all-reduces, by bytes / bandwidth alone
    held_out.where_bytes_differ(points)            # without places where all send equally many

A job is what `python -m tools.bench links` records of one run of measure_all_reduce.py:

    {"mbit": 200, "latency_ms": 0, "instances": 2, "ranks_per_instance": 4, "events": [...]}

The first job gives alpha, beta and the time of adding; all others give only what is predicted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from workshop.measure.alpha_beta import HierarchicalLinks, Link, bound, estimated_seconds
from workshop.measure.step_time import Compute, step_seconds

KEYS = ("mbit", "latency_ms", "instances", "ranks_per_instance")
PLACE = (*KEYS, "bytes")


@dataclass(frozen=True)
class Summary:
    """Errors of predictions, predicted / measured - 1.

    median: of the absolute errors. within: the part of the points whose error is at most `limit`.
    largest: the error that is farthest from 0, with its sign; where: the point that has it.
    """

    points: int
    median: float
    within: float
    limit: float
    largest: float
    where: str

    def __str__(self) -> str:
        return (
            f"{self.points} held-out points: median error {self.median:.0%}, {self.within:.0%} of "
            f"them within {self.limit:.0%}; the largest is {self.largest:+.0%}: {self.where}"
        )


def links_of(first: Mapping, mbit: float, latency_ms: float = 0.0) -> HierarchicalLinks:
    """The links as the first job measured them, at another bandwidth and with a longer way.

    Between instances a message's bytes take as many times as long as the bandwidth is narrower
    (packets have headers at any rate), and a latency is added to its alpha.
    """
    tiers = HierarchicalLinks.from_measurements(first["events"])
    links = tiers.inter_node
    if links is None:
        raise ValueError("No link between instances was measured: measure on two instances.")
    alone, busy = (
        Link(link.alpha + latency_ms / 1000, link.beta * first["mbit"] / mbit)
        for link in (links.alone, links.busy)
    )
    return replace(tiers, inter_node=replace(links, alone=alone, busy=busy))


def all_reduces(
    jobs: Sequence[Mapping], of: Callable[[Sequence[float]], float] = min
) -> pd.DataFrame:
    """A row for each all-reduce: the job's keys, algorithm, bytes, measured, predicted, error.

    Seconds. of: which of its blocks counts. That is the least: other programs can only add time,
    and the messages count by their least, too. An all-reduce whose chunk is as large as a message
    of the fit, on the very links of the fit, is no test and is left out.
    """
    rows = []
    for job in jobs:
        where = {name: job[name] for name in ("instances", "ranks_per_instance")}
        tiers = links_of(jobs[0], job["mbit"], job["latency_ms"])
        fitted = {e["bytes"] for e in jobs[0]["events"] if e["event"] == "link"}
        for event in job["events"]:
            if event["event"] != "all_reduce" or event["algorithm"].endswith(" again"):
                continue
            chunk = event["bytes"] / math.prod(where.values())
            same_link = all(job[name] == jobs[0][name] for name in KEYS)
            if same_link and any(abs(chunk / size - 1) < 0.1 for size in fitted):
                continue
            measured = of(event["seconds"])
            predicted = estimated_seconds(event["algorithm"], event["bytes"], links=tiers, **where)
            about = {name: job[name] for name in KEYS}
            about |= {"algorithm": event["algorithm"], "bytes": event["bytes"]}
            rows.append(about | {"measured": measured, "predicted": predicted})
    return _with_errors(rows)


def by_bytes(points: pd.DataFrame, first: str = "") -> pd.DataFrame:
    """The all-reduces of `points` again, predicted as bytes / bandwidth: the model's rival.

    first: the algorithm that wrong_winners shall take where equally many bytes are sent: it is
    predicted 0.1 % shorter.
    """
    predicted = [
        bound(
            point["algorithm"],
            point["bytes"],
            instances=point["instances"],
            ranks_per_instance=point["ranks_per_instance"],
            bits_per_second=1e6 * point["mbit"],
        )
        for point in points.to_dict("records")
    ]
    again = points.assign(predicted=predicted)
    again.loc[again["algorithm"] == first, "predicted"] *= 0.999
    return again.assign(error=again["predicted"] / again["measured"] - 1)


def where_bytes_differ(points: pd.DataFrame) -> pd.DataFrame:
    """The points of places and sizes at which not all algorithms send equally many bytes."""
    seconds = by_bytes(points).groupby(list(PLACE))["predicted"]
    return points[seconds.transform("max") > 1.001 * seconds.transform("min")]


def steps(jobs: Sequence[Mapping], alone: Sequence[Mapping], cores: float) -> pd.DataFrame:
    """A row for each size of model that DDP trained in a job, as all_reduces gives them.

    jobs: those of links first; then those of measure_steps.py. alone: its records on one rank.
    Seconds; measured is the least of the blocks. cores: of the machine that all ranks share.
    """
    compute = Compute.from_measurements(alone)
    rows = []
    for job in jobs:
        where = {name: job[name] for name in ("instances", "ranks_per_instance")}
        tiers = links_of(jobs[0], job["mbit"], job["latency_ms"])
        for event in job["events"]:
            if event["event"] != "steps":
                continue
            about = {name: job[name] for name in KEYS}
            about |= {"algorithm": "a DDP step", "bytes": event["gradient_bytes"]}
            inputs = (compute, event["images"], event["gradient_bytes"], "gloo", tiers)
            predicted = step_seconds(*inputs, **where, overlap=compute.behind, cores=cores)
            rows.append(about | {"measured": min(event["seconds"]), "predicted": predicted})
    return _with_errors(rows)


def _with_errors(rows: list[dict]) -> pd.DataFrame:
    columns = [*PLACE, "algorithm", "measured", "predicted"]
    points = pd.DataFrame(rows, columns=columns)
    return points.assign(error=points["predicted"] / points["measured"] - 1)


def summary(points: pd.DataFrame, limit: float = 0.12) -> Summary:
    """What the errors of all points come to. Raises ValueError if there is none."""
    if points.empty:
        raise ValueError("There is no point to judge the model by.")
    points = points.reset_index(drop=True)
    off = points["error"].abs()
    worst = points.loc[off.idxmax()]
    return Summary(
        points=len(points),
        median=float(off.median()),
        within=float((off <= limit).mean()),
        limit=limit,
        largest=float(worst["error"]),
        where=name_of(worst),
    )


def name_of(point: Mapping) -> str:
    """A point in words: "ring, 1 MB, 2 x 4 ranks, 200 Mbit/s"."""
    late = f", {point['latency_ms']:g} ms" if point["latency_ms"] else ""
    layout = f"{point['instances']} x {point['ranks_per_instance']} ranks"
    size, rate = f"{point['bytes'] / 1e6:.2g} MB", f"{point['mbit']:g} Mbit/s"
    return f"{point['algorithm']}, {size}, {layout}, {rate}{late}"


def wrong_winners(points: pd.DataFrame, tie: float = 1.05) -> pd.DataFrame:
    """A row for each place and size where the predicted fastest algorithm was not the fastest.

    tie: what takes less than so many times as long is as fast. Columns: where, predicted,
    measured (names), and slower: how many times as long the predicted one took, measured.
    """
    rows = []
    for _, group in points.reset_index(drop=True).groupby(list(PLACE)):
        chosen = group.loc[group["predicted"].idxmin()]
        fastest = group.loc[group["measured"].idxmin()]
        if chosen["measured"] < tie * fastest["measured"]:
            continue
        where = name_of(fastest).partition(", ")[2]
        names = {"predicted": chosen["algorithm"], "measured": fastest["algorithm"]}
        rows.append({"where": where, **names, "slower": chosen["measured"] / fastest["measured"]})
    return pd.DataFrame(rows, columns=["where", "predicted", "measured", "slower"])
