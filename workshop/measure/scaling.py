"""What several ranks gain, and where a step's time goes: step = compute + wait + communication.

    done = mpirun(2, DEMOS / "measure_scaling.py", "--library", "torch", show=False)
    scaling = Scaling.from_records(done.events)       # or of a job: its result's events
    scaling.speed_up.text                             # "1.8 (1.7 to 1.9)"

Everything is a ratio taken within a round, so that a busy minute of the machine is on both sides
of it. `noise` is the ratio of two measurements of the same thing: what is smaller shows nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from workshop.measure import interleaved

BACKWARD = 2 / 3  # of a step's computing: it has about twice the operations of forward
PARTS = ("compute", "wait", "exposed communication")


@dataclass(frozen=True)
class Estimate:
    """A ratio: the median of its rounds, the lowest and the highest of them."""

    median: float
    low: float
    high: float

    @classmethod
    def from_rounds(cls, by_round: pd.Series) -> Estimate:
        """From a value for each round."""
        return cls(float(by_round.median()), float(by_round.min()), float(by_round.max()))

    @property
    def text(self) -> str:
        """With two significant digits: "0.93 (0.90 to 1.0)"."""
        median, low, high = (f"{x:#.2g}".rstrip(".") for x in (self.median, self.low, self.high))
        return f"{median} ({low} to {high})"

    @property
    def fixed(self) -> str:
        """With two decimals, to compare several: "0.93 (0.90 to 1.04)"."""
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True)
class Scaling:
    """One configuration, as scripts/demos/measure_scaling.py measured it.

    rounds: a row for each round, in seconds per step. alone: one process. compute: the mean of the
    ranks, nothing exchanged. wait: until the slowest rank has computed, the mean of the ranks.
    exposed: what a step takes beyond compute and wait: what the library couldn't hide of the
    exchange, and its own work; in a round in which the step happened to be faster it is below 0.
    step, and again: the whole step, measured twice. exchange: an all-reduce of as many bytes.
    """

    library: str
    scaling: str
    world_size: int
    instances: int
    global_batch_size: int
    gradient_bytes: int
    rounds: pd.DataFrame

    @classmethod
    def from_records(cls, records: Iterable[Mapping[str, Any]]) -> Scaling:
        """From the records that the script printed; those of other kinds are passed over.

        Raises ValueError unless there are one "scaling" record and at least one "round".
        """
        records = list(records)
        about = [record for record in records if record.get("event") == "scaling"]
        rounds = [_round(record) for record in records if record.get("event") == "round"]
        if len(about) != 1 or not rounds:
            raise ValueError(
                f"{len(about)} records of a configuration and {len(rounds)} of rounds: expected 1, "
                "and 1 or more. Did measure_scaling.py run to its end, once?"
            )
        names = {field.name for field in fields(cls)} - {"rounds"}
        return cls(**{name: about[0][name] for name in names}, rounds=pd.DataFrame(rounds))

    @classmethod
    def by_batch(cls, records: Iterable[Mapping[str, Any]]) -> dict[int, Scaling]:
        """From the records of several global batch sizes: each size's own, in their order.

        Raises ValueError as `from_records` does.
        """
        parts: dict[int, list[Mapping[str, Any]]] = {}
        for record in records:
            if record.get("event") == "scaling":
                part = parts[record["global_batch_size"]] = []
            if record.get("event") in ("scaling", "round"):
                part.append(record)
        return {batch_size: cls.from_records(part) for batch_size, part in parts.items()}

    @property
    def images(self) -> int:
        """How many times the work of `alone` a step of all ranks does: 1 if scaling is strong."""
        return self.world_size if self.scaling == "weak" else 1

    @property
    def speed_up(self) -> Estimate:
        """How many times as fast as one process all ranks together work."""
        return Estimate.from_rounds(self.images * self.rounds["alone"] / self.rounds["step"])

    @property
    def ceiling(self) -> Estimate:
        """The speed-up of as many processes that exchange nothing: what this machine can give."""
        return Estimate.from_rounds(self.images * self.rounds["alone"] / self.rounds["compute"])

    @property
    def share(self) -> Estimate:
        """Which share of the ceiling is reached: compute / step; 1 would be no cost at all."""
        return Estimate.from_rounds(self.rounds["compute"] / self.rounds["step"])

    @property
    def r(self) -> Estimate:
        """exchange / compute."""
        return Estimate.from_rounds(self.rounds["exchange"] / self.rounds["compute"])

    @property
    def noise(self) -> Estimate:
        """A/A: step / again. Both are the same, so what differs is noise: its median and band."""
        ratio = self.rounds["step"] / self.rounds["again"]
        return Estimate(float(ratio.median()), *interleaved.band(ratio))

    @property
    def parts(self) -> pd.Series:
        """`medians` in ms, to be drawn: none below 0."""
        return 1000 * self.medians.clip(lower=0)

    @property
    def medians(self) -> pd.Series:
        """The medians of PARTS, in seconds; their sum is the step, as far as medians add up.

        Below 0 the noise of the rounds is larger than that part.
        """
        return self.rounds[["compute", "wait", "exposed"]].median().set_axis(list(PARTS))

    def record(self) -> dict[str, Any]:
        """What `workshop.save_results(scaling={name: ...})` keeps of it."""
        return {
            "world_size": self.world_size,
            **{name: vars(getattr(self, name)) for name in ("speed_up", "ceiling", "share", "r")},
            "noise": vars(self.noise),
        }


def _round(record: Mapping[str, Any]) -> dict[str, float]:
    compute = np.array(record["compute"])  # by rank and step
    mean = float(np.median(compute.mean(axis=0)))
    slowest = float(np.median(compute.max(axis=0)))
    step = max(record["step"])
    return {
        "alone": record["alone"],
        "compute": mean,
        "wait": slowest - mean,
        "exposed": step - slowest,
        "step": step,
        "again": max(record["again"]),
        "exchange": max(record["exchange"]),
    }


def table(scalings: Mapping[str, Scaling]) -> pd.DataFrame:
    """A row for each configuration: the parts of a step in ms, and the ratios with their ranges."""
    rows = {
        name: {
            "ranks": scaling.world_size,
            **{f"{part}, ms": round(1000 * ms, 1) for part, ms in scaling.medians.items()},
            "exchange alone, ms": round(1000 * scaling.rounds["exchange"].median(), 1),
            "speed-up": scaling.speed_up.fixed,
            "ceiling": scaling.ceiling.fixed,
            "share of the ceiling": scaling.share.fixed,
            "r": scaling.r.text,
            "noise (A/A), median round": f"a factor of {scaling.noise.high:.2f}",
        }
        for name, scaling in scalings.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def share_at(r: float | np.ndarray, hidden: float = 0.0) -> float | np.ndarray:
    """Which share of the ceiling ranks reach that exchange for r times as long as they compute.

    hidden: the part of compute during which gradients already travel, 0 to 1. Nothing hidden gives
    1 / (1 + r).
    """
    return 1 / (1 + np.maximum(0.0, np.asarray(r) - hidden))
