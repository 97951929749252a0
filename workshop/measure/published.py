"""The cost model against scalings that others have published.

    frame = predictions()              # a row for each published number: measured, predicted, error
    all_reduce_seconds(1e9, Machine(instances=2, ranks_each=8, intra=300e9, inter=50e9))

The model is lesson 02's, alpha and beta. beta is what a data sheet says of a link, alpha are the
latencies with which NCCL itself chooses an algorithm. Nothing is fitted to a published time. So it
says what a machine can do, and a published time above it says what was lost.

NCCL's ring visits all ranks of an instance before it leaves, so each link of an instance carries
2 (N - 1) / N times the bytes. Its trees add up within an instance first. On two instances they send
the bytes once over the network (two tiers); on more, each card passes about twice the bytes.
Latencies and these factors: src/graph/tuning.cc of NCCL at commit 5067397, read on 2026-11-25.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from workshop.measure.scaling import BACKWARD
from workshop.paths import RECORDED

PUBLISHED = RECORDED / "published_scalings.toml"
ALGORITHMS = ("ring", "tree")


@dataclass(frozen=True)
class Protocol:
    """How NCCL sends: seconds for a call, for a hop within an instance and between instances.

    bandwidth: the part of a link's bandwidth that is left for data.
    """

    call: float
    intra: dict[str, float]
    inter: dict[str, float]
    bandwidth: float


# LL sends a flag with every 4 bytes: half of the bandwidth, and no waiting for whole chunks.
PROTOCOLS = {
    "LL": Protocol(6.7e-6, {"ring": 1.0e-6, "tree": 0.6e-6}, {"ring": 2.7e-6, "tree": 5e-6}, 0.5),
    "Simple": Protocol(8.4e-6, {"ring": 3.4e-6, "tree": 4e-6}, {"ring": 14e-6, "tree": 14e-6}, 1.0),
}


@dataclass(frozen=True)
class Machine:
    """Instances and their links, in bytes per second and direction.

    intra: of one rank to its neighbours. inter: of an instance's network cards together.
    """

    instances: int
    ranks_each: int
    intra: float
    inter: float

    @property
    def ranks(self) -> int:
        """All ranks of the job."""
        return self.instances * self.ranks_each


def latency_seconds(machine: Machine, algorithm: str, protocol: Protocol) -> float:
    """What an all-reduce takes however few bytes there are: the hops of its longest way.

    Raises ValueError for an algorithm that is not in ALGORITHMS.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"No algorithm {algorithm!r}; there are {', '.join(ALGORITHMS)}.")
    n, each = machine.instances, machine.ranks_each
    if algorithm == "tree":
        within, across = 2 * (each - 1), 2 * math.log2(n)
    else:  # a chunk goes twice round, and each time over every border between instances once
        across = 2 * (n - 1)
        within = 2 * (machine.ranks - 1) - across
    return protocol.call + within * protocol.intra[algorithm] + across * protocol.inter[algorithm]


def bytes_seconds(n_bytes: float, machine: Machine, algorithm: str) -> float:
    """What the bytes need on the busier kind of link, within an instance or between instances."""
    n, each, ranks = machine.instances, machine.ranks_each, machine.ranks
    if algorithm == "ring" or n == 1:
        carried = 2 * (ranks - 1) / ranks * n_bytes
        return max(carried / machine.intra, carried / machine.inter if n > 1 else 0.0)
    network = 1 if n == 2 else 2
    within = 2 * (each - 1) / each * n_bytes
    return max(within / machine.intra, network * n_bytes / machine.inter)


def all_reduce_seconds(n_bytes: float, machine: Machine, algorithm: str = "") -> float:
    """Seconds of one all-reduce: the fastest way NCCL has, or the fastest by `algorithm`."""
    return min(
        latency_seconds(machine, name, protocol)
        + bytes_seconds(n_bytes, machine, name) / protocol.bandwidth
        for name in ([algorithm] if algorithm else ALGORITHMS)
        for protocol in PROTOCOLS.values()
    )


def exchange_seconds(step: Mapping[str, Any], machine: Machine) -> float:
    """Seconds in which a training step's bytes cross the network, nothing hidden.

    step: a [[source.step]] of the file; its `exchange` says how.
    """
    n, n_bytes, kind = machine.instances, step["gradient_bytes"], step.get("exchange", "all_reduce")
    if kind == "all_reduce":
        return all_reduce_seconds(n_bytes, machine)
    if kind == "parameter_server":  # gradients to the other instances' servers, weights back
        return 2 * (n - 1) / n * n_bytes / machine.inter
    if kind != "fsdp":
        raise ValueError(f"No exchange {kind!r}: all_reduce, parameter_server or fsdp.")
    # An all-gather, or a reduce-scatter, is half of an all-reduce by a ring.
    halves, layers = step["gathers_per_step"] + 1, step["layers"]
    return halves * layers * all_reduce_seconds(n_bytes / layers, machine, "ring") / 2


def step_seconds(step: Mapping[str, Any], machine: Machine) -> tuple[float, float]:
    """A training step with as much hidden as can be, and with nothing hidden; seconds."""
    compute, exchange = step["compute_ms"] / 1000, exchange_seconds(step, machine)
    return compute + max(0.0, exchange - BACKWARD * compute), compute + exchange


def sources(path: Path = PUBLISHED) -> list[dict[str, Any]]:
    """The published sources, as the file has them."""
    return tomllib.loads(path.read_text(encoding="utf-8"))["source"]


def predictions(path: Path = PUBLISHED) -> pd.DataFrame:
    """A row for each published number.

    Columns: source, kind ("all-reduce" or "step"), case, ranks, measured_ms, predicted_ms (of a
    step: as much hidden as can be), nothing_hidden_ms (of a step; NaN else), error (predicted over
    measured, less 1; of a step: by how much the measured one is outside the two).
    """
    return pd.DataFrame(row for source in sources(path) for row in _rows(source))


def _rows(source: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for row in [*source.get("all_reduce", []), *source.get("step", [])]:
        machine = _machine(source | row)
        if "model" in row:
            kind, case = "step", row["model"]
            measured = row["compute_ms"] / row["efficiency"]
            low, high = (1000 * seconds for seconds in step_seconds(row, machine))
            nearest = min(max(measured, low), high)
        else:
            algorithm = row.get("algorithm", "")
            kind, case = "all-reduce", f"{_size(row['bytes'])} {algorithm}".strip()
            measured, high = row["ms"], math.nan
            nearest = low = 1000 * all_reduce_seconds(row["bytes"], machine, algorithm)
        yield {
            "source": source["name"],
            "kind": kind,
            "case": case,
            "ranks": machine.ranks,
            "measured_ms": measured,
            "predicted_ms": low,
            "nothing_hidden_ms": high,
            "error": nearest / measured - 1,
        }


def _machine(row: Mapping[str, Any]) -> Machine:
    return Machine(row["instances"], row["ranks_each"], row["intra"] * 1e9, row["inter"] * 1e9)


def _size(n_bytes: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes} B"
