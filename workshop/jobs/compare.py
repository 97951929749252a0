"""What several configurations of one training achieved, and cost, side by side in a table.

results = workshop.run_jobs({"1 x 1": one, "2 x 1": two}, channels)
table = workshop.compare(results)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workshop.account.prices import PriceNotKnown, cost
from workshop.jobs.follow import JobResult

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {  # column: decimals
    "instances": 0,
    "processes": 0,
    "world_size": 0,
    "global_batch_size": 0,
    "step ms": 2,
    "samples/s": 0,
    "speed-up": 2,
    "billable s": 0,
    "USD": 5,
}


def compare(results: Mapping[str, Any]) -> pd.DataFrame:
    """A table of what was measured, a row for each configuration, in the order given.

    Args:
        results: name -> what `follow`, `run_jobs` or `mpirun` returned. The script must have
            printed "start" and "epoch" records, as those in scripts/ do.

    Returns:
        a pandas table, its index the names. processes: on each instance. step ms: the median
        of the epochs' means. samples/s: of all processes together, at that step time.
        speed-up: samples/s against the first row's. billable s: of each instance. USD: what
        AWS would bill for so many seconds; the prices' date is in attrs["price_date"].
        The last two are NaN for what was no job, and USD for a type without a known price.

    Raises:
        ValueError: no result, or one without a timed step.
    """
    import pandas as pd

    if not results:
        raise ValueError('compare() needs at least one result: compare({"2 x 1": result}).')
    prices: list = []
    rows = {name: _row(name, result, prices) for name, result in results.items()}
    table = pd.DataFrame.from_dict(rows, orient="index")
    table["speed-up"] = table["samples/s"] / table["samples/s"].iloc[0]
    table = table[list(COLUMNS)].round(COLUMNS).rename_axis("configuration")
    table["samples/s"] = table["samples/s"].astype(int)
    table.attrs["price_date"] = str(min(prices)) if prices else None
    return table


def _row(name: str, result: Any, prices: list) -> dict[str, float]:
    start = result.table("start").iloc[0]
    seconds = _step_seconds(name, result)
    is_job = hasattr(result, "billable_seconds")
    instances = result.instance_count if is_job else 1
    batch = int(start["global_batch_size"])
    return {
        "instances": instances,
        "processes": int(start["world_size"]) // instances,
        "world_size": int(start["world_size"]),
        "global_batch_size": batch,
        "step ms": 1000 * seconds,
        "samples/s": batch / seconds,
        "billable s": result.billable_seconds if is_job else float("nan"),
        "USD": _usd(result, prices) if is_job else float("nan"),
    }


def _step_seconds(name: str, result: Any) -> float:
    """The median of the epochs' means: an epoch in which this machine was busy counts once."""
    epochs = result.table("epoch")
    if "step_seconds" not in epochs:
        raise ValueError(
            f"{name} has no timed step: a script's first step is not counted, because it also "
            "builds the model. Train for more steps."
        )
    return float(epochs["step_seconds"].median())


def _usd(result: JobResult, prices: list) -> float:
    try:
        price = cost(result.instance_type, result.instance_count, result.billable_seconds)
    except PriceNotKnown:
        return float("nan")
    prices.append(price.price_date)
    return price.usd
