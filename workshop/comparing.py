"""Several configurations of one training, run one after the other, side by side in a table.

results = workshop.run_jobs({"1 x 1": one, "2 x 1": two}, channels)
table = workshop.compare(results)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workshop.costs import PriceNotKnown, cost
from workshop.following import JobFailed, JobResult, watch
from workshop.live import LiveText

if TYPE_CHECKING:
    import pandas as pd

    from workshop.launch.mpirun import Finished

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


def run_jobs(estimators: Mapping[str, Any], channels: Mapping | None = None) -> dict:
    """Run jobs one after the other, with live progress and a line for each that has ended.

    Never two at once: on one machine they would take each other's cores, and every time that
    they measure would be wrong.

    Args:
        estimators: name -> an estimator that has no job yet.
        channels: what every one's `fit` gets.

    Returns:
        name -> JobResult.

    Raises:
        JobFailed: one did not complete; those after it are not started.
    """
    live, lines, results = LiveText(), [], {}
    width = max(map(len, estimators), default=0)
    for name, estimator in estimators.items():

        def show(progress: str, name: str = name) -> None:
            live.update("\n".join([*lines, f"{name:<{width}}  {progress}"]))

        show("is being asked for")
        estimator.fit(channels, wait=False)
        result = results[name] = watch(estimator, show)
        if result.status != "Completed":
            live.finish("\n".join([*lines, f"{name:<{width}}  {result.status}"]))
            raise JobFailed(f"{name}: {result.why()}{_not_started(estimators, results)}")
        lines.append(f"{name:<{width}}  {_in_a_line(result)}")
    live.finish("\n".join(lines))
    return results


def compare(results: Mapping[str, JobResult | Finished]) -> pd.DataFrame:
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


def _row(name: str, result: JobResult | Finished, prices: list) -> dict[str, float]:
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


def _step_seconds(name: str, result: JobResult | Finished) -> float:
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
        found = cost(result.instance_type, result.instance_count, result.billable_seconds)
    except PriceNotKnown:
        return float("nan")
    prices.append(found.price_date)
    return found.usd


def _in_a_line(result: JobResult) -> str:
    training = result.phases.get("Training", 0.0)
    said = f"{result.status}, training {training:.1f} s"
    return f"{said}, billable {result.billable_seconds} s x {result.instance_count} instance(s)"


def _not_started(estimators: Mapping, results: Mapping) -> str:
    rest = [name for name in estimators if name not in results]
    return f"\nNot started after it: {', '.join(rest)}." if rest else ""
